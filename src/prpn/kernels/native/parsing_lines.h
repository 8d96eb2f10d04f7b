// How a line of trees is written: brackets, spans, JSON, or brackets with labels; or not at all.
#pragma once

#include <string>
#include <string_view>

#include "parsing_chunks.h"
#include "parsing_trees.h"

namespace prpn {

enum class LineFormat : int32_t { brackets, spans, json, labelled, none };
constexpr int32_t LINE_FORMATS = 5;

inline std::string without_brackets(std::string_view word) {
    std::string text;
    for (const char byte : word) {
        if (byte == '(' || byte == ')') {
            text += byte == '(' ? "-LRB-" : "-RRB-";
        } else {
            text += byte;
        }
    }
    return text;
}

// The inside of a JSON string, as json.dumps(…, ensure_ascii=False) writes it.
inline std::string quoted(std::string_view word) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const char byte : word) {
        if (byte == '"' || byte == '\\') {
            text += '\\';
            text += byte;
        } else if (byte == '\b') {
            text += "\\b";
        } else if (static_cast<unsigned char>(byte) < 0x20) {  // the other short forms are of white space
            text += "\\u00";
            text += digits[byte >> 4];
            text += digits[byte & 15];
        } else {
            text += byte;
        }
    }
    return text;
}

// A word in a bracket of its own, since a bracket's label may not be taken for a word.
inline std::string tagged(std::string_view word) { return "(W " + std::string(word) + ")"; }

// Remembers words as they will be written, and writes them with a tree.
class LineWriter {
public:
    LineWriter(LineFormat format, Chunks& chunks) : format_(format), chunks_(chunks) {}

    bool wants_ends() const { return format_ != LineFormat::brackets; }
    bool wants_distances() const { return format_ == LineFormat::json; }

    bool wants_offsets() const { return format_ == LineFormat::json || format_ == LineFormat::none; }

    // The word stands for the characters begin … end − 1 of its chunk.
    void add_word(int64_t number, int32_t id, std::string_view text, int32_t begin, int32_t end) {
        const Word word{id, begin, end, 0, 0, 0};
        if (format_ == LineFormat::brackets) chunks_.add_word(number, word, without_brackets(text), {});
        else if (format_ == LineFormat::json)
            chunks_.add_word(number, word, quoted(without_brackets(text)), quoted(text));
        else if (format_ == LineFormat::labelled) chunks_.add_word(number, word, tagged(without_brackets(text)), {});
        else chunks_.add_word(number, word, {}, {});
    }

    // `offsets`: where each word begins and ends in its line, for JSON; so are the distances.
    void write(Output& out, const int64_t* words, int64_t n, const Constituents& tree, const double* distances,
               const int32_t* offsets) const {
        if (format_ == LineFormat::none) return;
        if (format_ == LineFormat::brackets) return write_brackets(out, words, n, tree, "(");
        if (format_ == LineFormat::labelled) return write_brackets(out, words, n, tree, "(X ");
        if (format_ == LineFormat::spans) return write_spans(out, n, tree, "-", " ", "", "");
        out.add(std::string_view("{\"words\": ["));
        for (int64_t i = 0; i < n; ++i) {
            const Word& word = chunks_.word(words[i]);
            out.add(std::string_view(i ? ", \"" : "\""));
            out.add(chunks_.bytes(word.at + word.written), word.quoted);
            out.add('"');
        }
        out.add(std::string_view("], \"tree\": \""));
        write_brackets(out, words, n, tree, "(");
        out.add(std::string_view("\", \"spans\": ["));
        write_spans(out, n, tree, ", ", ", ", "[", "]");
        out.add(std::string_view("], \"distances\": ["));
        for (int64_t i = 0; i < n; ++i) {
            if (i) out.add(std::string_view(", "));
            add_rounded(out, distances[i]);
        }
        out.add(std::string_view("], \"offsets\": ["));
        for (int64_t i = 0; i < n; ++i) {
            out.add(std::string_view(i ? ", [" : "["));
            out.add_integer(offsets[2 * i]);
            out.add(std::string_view(", "));
            out.add_integer(offsets[2 * i + 1]);
            out.add(']');
        }
        out.add(std::string_view("]}"));
    }

private:
    void write_brackets(Output& out, const int64_t* words, int64_t n, const Constituents& tree,
                        std::string_view open) const {
        for (int64_t i = 0; i < n; ++i) {
            const Word& word = chunks_.word(words[i]);
            const int64_t opening = n > 1 ? tree.opening[i] : 1;
            if (i) out.add(' ');
            if (open.size() == 1) out.add(open[0], opening);
            else
                for (int64_t k = 0; k < opening; ++k) out.add(open);
            out.add(chunks_.bytes(word.at), word.written);
            out.add(')', n > 1 ? tree.closing[i] : 1);
        }
    }

    static void write_spans(Output& out, int64_t n, const Constituents& tree, std::string_view inside,
                            std::string_view between, std::string_view left, std::string_view right) {
        int64_t written = 0;
        for (int64_t start = 0; start < n; ++start) {
            for (int64_t i = 0; i < tree.opening[start]; ++i) {
                if (written) out.add(between);
                out.add(left);
                out.add_integer(start);
                out.add(inside);
                out.add_integer(tree.ends[written++]);
                out.add(right);
            }
        }
    }

    const LineFormat format_;
    Chunks& chunks_;
};

}  // namespace prpn
