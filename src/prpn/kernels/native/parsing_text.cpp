// Text in, trees out, for callers: see parsing_text.h.
#include "parsing_text.h"

#include "api.h"

namespace prpn {
namespace {

Text* as_text(void* handle) { return static_cast<Text*>(handle); }

}  // namespace
}  // namespace prpn

// Chunks are forgotten before a block once there are more than `most_chunks`, or they fill more than `most_bytes`.
PRPN_API void* prpn_text_new(int32_t format, int32_t lowercase, int32_t unknown, int64_t most_chunks,
                             int64_t most_bytes) {
    return new prpn::Text(prpn::LineFormat{format}, lowercase != 0, unknown, most_chunks, most_bytes);
}

PRPN_API void prpn_text_delete(void* handle) { delete prpn::as_text(handle); }

// `words`: words of ASCII letters, each followed by a line end, with their ids; −1 for what is not to be taken for one.
PRPN_API void prpn_text_plain_words(void* handle, const char* words, const int32_t* ids, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const char* end = words;
        while (*end != '\n') ++end;
        prpn::as_text(handle)->plain().add({words, size_t(end - words)}, ids[i]);
        words = end + 1;
    }
}

PRPN_API int64_t prpn_text_read(void* handle, const char* text, int64_t size, int64_t threads) {
    return prpn::as_text(handle)->read(text, size, threads);
}

PRPN_API int64_t prpn_text_unknown(void* handle, const char** text) {
    const std::string& unknown = prpn::as_text(handle)->unknown();
    *text = unknown.data();
    return unknown.size();
}

PRPN_API void prpn_text_define(void* handle, const char* words, int64_t size, const int32_t* ids,
                               const int64_t* counts) {
    prpn::as_text(handle)->define({words, size_t(size)}, ids, counts);
}

// The ids of the block's words, and where each line ends in them; returns the number of lines.
PRPN_API int64_t prpn_text_words(void* handle, int64_t threads, const int32_t** ids, const int64_t** ends) {
    prpn::Text* text = prpn::as_text(handle);
    text->find_words(threads);
    *ids = text->ids().data();
    *ends = text->ends().data();
    return text->ends().size();
}

// Returns the number of parts that were written; `distances` are read for JSON only.
PRPN_API int64_t prpn_text_write(void* handle, const float* scores, const double* distances, int32_t builder,
                                 int64_t threads) {
    prpn::as_text(handle)->write(scores, distances, prpn::Builder{builder}, threads);
    return prpn::as_text(handle)->parts();
}

PRPN_API int64_t prpn_text_part(void* handle, int64_t part, const char** text) {
    const prpn::Output& out = prpn::as_text(handle)->output(part);
    *text = out.data();
    return out.size();
}
