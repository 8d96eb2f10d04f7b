// What every exported function shares. Arrays are row-major, sizes are counts of elements, nothing is allocated for the
// caller, and nothing is kept between two calls unless a handle is returned.
#pragma once

#include <cstdint>

#define PRPN_API extern "C" __attribute__((visibility("default")))
