// What a caller may ask after a function failed.
#include "api.h"

PRPN_API const char* prpn_message() { return prpn::message(); }
