// Text in, trees out, for callers: see parsing_text.h.
#include "parsing_text.h"

#include "api.h"

using prpn::check_array;
using prpn::check_kind;
using prpn::check_threads;
using prpn::guarded;
using prpn::require;
using prpn::Text;

// Chunks are forgotten before a block once there are more than `most_chunks`, or they fill more than `most_bytes`.
PRPN_API int32_t prpn_text_new(int32_t format, int32_t lowercase, int32_t unknown, int64_t most_chunks,
                               int64_t most_bytes, Text** text) {
    return guarded([&] {
        check_kind("format", format, prpn::LINE_FORMATS);
        require(unknown >= -1, "a word has a negative number");
        prpn::check_sizes({most_chunks});
        prpn::check_sizes({most_bytes});
        require(text, "no place for the text");
        *text = new Text(prpn::LineFormat{format}, lowercase != 0, unknown, most_chunks, most_bytes);
    });
}

PRPN_API int32_t prpn_text_delete(Text* text) {
    return guarded([&] {
        if (text) Text::Use use(text);
        delete text;
    });
}

// `words`: words of ASCII letters, each followed by a line end, with their ids; −1 for what is not to be taken for one.
PRPN_API int32_t prpn_text_plain_words(Text* text, const char* words, int64_t size, const int32_t* ids, int64_t count) {
    return guarded([&] {
        const Text::Use use(text);
        check_array("words", words, {size});
        check_array("ids", ids, {count});
        std::string_view rest(words, size);
        require(std::count(rest.begin(), rest.end(), '\n') == count, "there are not as many words as ids");
        for (int64_t i = 0; i < count; ++i) {
            const size_t end = rest.find('\n');
            use->plain().add(rest.substr(0, end), ids[i]);
            rest.remove_prefix(end + 1);
        }
    });
}

// Cuts lines of UTF-8 into chunks, and says how many of these are unknown.
PRPN_API int32_t prpn_text_read(Text* text, const char* block, int64_t size, int64_t threads, int64_t* unknown) {
    return guarded([&] {
        const Text::Use use(text);
        check_array("block", block, {size});
        check_threads(threads);
        *unknown = use->read(block, size, threads);
    });
}

PRPN_API int32_t prpn_text_unknown(Text* text, const char** chunks, int64_t* size) {
    return guarded([&] {
        const Text::Use use(text);
        *chunks = use->unknown().data();
        *size = use->unknown().size();
    });
}

PRPN_API int32_t prpn_text_define(Text* text, const char* words, int64_t size, const int32_t* ids,
                                  const int32_t* offsets, int64_t all, const int64_t* counts, int64_t chunks) {
    return guarded([&] {
        const Text::Use use(text);
        check_array("words", words, {size});
        check_array("ids", ids, {all});
        check_array("offsets", offsets, {all, 2});
        check_array("counts", counts, {chunks});
        use->define({words, size_t(size)}, ids, offsets, all, counts, chunks);
    });
}

// The ids of the block's words, and where each of its lines ends in them.
PRPN_API int32_t prpn_text_words(Text* text, int64_t threads, const int32_t** ids, const int64_t** ends,
                                 int64_t* lines) {
    return guarded([&] {
        const Text::Use use(text);
        check_threads(threads);
        use->find_words(threads);
        *ids = use->ids().data();
        *ends = use->ends().data();
        *lines = use->ends().size();
    });
}

// Where each of these words begins and ends in its line, in characters; none where the format does not want it.
PRPN_API int32_t prpn_text_offsets(Text* text, const int32_t** offsets, int64_t* count) {
    return guarded([&] {
        const Text::Use use(text);
        *offsets = use->offsets().data();
        *count = use->offsets().size();
    });
}

// The trees of all lines, from the scores of all words, in some parts; `distances` are read for JSON only.
PRPN_API int32_t prpn_text_write(Text* text, const float* scores, const double* distances, int64_t words,
                                 int32_t builder, int64_t threads, int64_t* parts) {
    return guarded([&] {
        const Text::Use use(text);
        check_kind("builder", builder, prpn::BUILDERS);
        check_threads(threads);
        use->write(scores, distances, words, prpn::Builder{builder}, threads);
        *parts = use->parts();
    });
}

PRPN_API int32_t prpn_text_part(Text* text, int64_t part, const char** written, int64_t* size) {
    return guarded([&] {
        const Text::Use use(text);
        const prpn::Output& out = use->output(part);
        *written = out.data();
        *size = out.size();
    });
}
