// Text in, trees out: lines become chunks, chunks words, words with their scores trees, trees lines.
//
//     read     cuts a block of lines into chunks and looks up their words; some are unknown
//     define   is told the words of those
//     words    lists the ids of all words of the block, for which the caller finds scores
//     write    builds the trees and writes them
//
// in this order; nothing is done out of turn, nor by two threads that share a text. A block is worked on in parts of whole
// lines, which threads take one after the other.
#pragma once

#include <algorithm>
#include <atomic>

#include "checks.h"
#include "parsing_chunks.h"
#include "parsing_lines.h"
#include "parsing_trees.h"
#include "workers.h"

namespace prpn {

constexpr int64_t PART = 1 << 14;  // bytes

struct Missing {
    int64_t place;  // among the chunks of the part
    std::string_view chunk;
    bool is_last;
};

struct Part {
    const char *begin, *end;
    std::vector<int64_t> chunks, line_chunks;  // entries of all chunks; how many of them there are up to each line end
    std::vector<int32_t> starts;               // of the chunks, in characters of their lines, where they are wanted
    std::vector<Missing> missing;
    std::vector<int64_t> words, line_words;  // the same of words
    std::vector<int32_t> ids, offsets;       // offsets: where each word begins and ends in its line
    int64_t first_word;                      // in the block
    Output out;
};

// The words that every tokenizer leaves whole: of ASCII letters alone, but for some exceptions.
class PlainWords {
public:
    PlainWords(bool lowercase, int32_t unknown) : lowercase_(lowercase), unknown_(unknown) {}

    void add(std::string_view word, int32_t id) {  // −1: an exception, in lower case
        Chunks& chunks = id < 0 ? exceptions_ : known_;
        const int64_t number = chunks.add(word, false);
        chunks.begin_words(number);
        chunks.add_word(number, {id, 0, int32_t(word.size()), 0, 0, 0}, {}, {});
    }

    // The id of a chunk if it is such a word, else −1.
    int32_t id(std::string_view chunk) {
        if (!std::all_of(chunk.begin(), chunk.end(), is_letter)) return -1;
        lower_.assign(chunk);
        for (char& byte : lower_) byte |= 0x20;
        if (exceptions_.find(lower_, false) >= 0) return -1;
        const int64_t number = known_.find(lowercase_ ? lower_ : chunk, false);
        return number < 0 ? unknown_ : known_.words(known_.entry(number))->id;
    }

private:
    bool lowercase_;
    int32_t unknown_;
    Chunks known_, exceptions_;
    std::string lower_;
};

class Text {
public:
    Text(LineFormat format, bool lowercase, int32_t unknown, int64_t most_chunks, int64_t most_bytes)
        : writer_(format, chunks_), plain_(lowercase, unknown), most_chunks_(most_chunks), most_bytes_(most_bytes) {}

    PlainWords& plain() { return plain_; }

    int64_t read(const char* text, int64_t size, int64_t threads) {
        const bool whole = stage_ != READING;  // else chunks are remembered whose words nobody said
        if (!whole || chunks_.count() > most_chunks_ || chunks_.size() > most_bytes_) chunks_.clear();
        stage_ = READING, asked_ = false;
        cut(text, size);
        for_each_part(threads, [&](Part& part) {
            split(part);
            if (part.missing.empty()) find_words(part);
        });
        unknown_.clear();
        unknown_text_.clear();
        for (int64_t p = 0; p < parts_; ++p) {
            for (const Missing& missing : part_[p].missing) part_[p].chunks[missing.place] = remember(missing);
        }
        asked_ = !unknown_.empty();
        if (!asked_) stage_ = READ;
        return unknown_.size();
    }

    // One chunk a line, each preceded by whether it is the last of its line: 1 or 0.
    const std::string& unknown() const { return unknown_text_; }

    // `words`: the words of all unknown chunks, each followed by a line end; `counts`: how many each chunk has;
    // `offsets`: which characters of its chunk each word stands for, its first and the one after its last.
    void define(std::string_view words, const int32_t* ids, const int32_t* offsets, int64_t all, const int64_t* counts,
                int64_t chunks) {
        require(asked_, "no words are asked for");
        require(chunks == int64_t(unknown_.size()), "there are not as many counts as unknown chunks");
        int64_t counted = 0;
        for (int64_t i = 0; i < chunks; ++i) {
            require(counts[i] >= 0 && counts[i] <= all - counted, "the counts are not those of the words");
            counted += counts[i];
        }
        require(counted == all, "the counts are not those of the words");
        require(std::count(words.begin(), words.end(), '\n') == all, "there are not as many words as ids");
        asked_ = false;
        for (size_t i = 0; i < unknown_.size(); ++i) {
            chunks_.begin_words(unknown_[i]);
            for (int64_t j = 0; j < counts[i]; ++j) {
                const size_t end = words.find('\n');
                writer_.add_word(unknown_[i], *ids++, words.substr(0, end), offsets[0], offsets[1]);
                offsets += 2;
                words.remove_prefix(end + 1);
            }
        }
        stage_ = READ;
    }

    void find_words(int64_t threads) {
        require(stage_ >= READ, "no block was read, or not all its words are known");
        stage_ = READ;
        const auto waits = [](const Part& part) { return !part.missing.empty(); };  // for words that were unknown
        const int64_t waiting = std::count_if(part_.begin(), part_.begin() + parts_, waits);
        for_each_part(std::min(threads, waiting), [&](Part& part) {
            if (waits(part)) find_words(part);
        });
        ids_.clear();
        ends_.clear();
        offsets_.clear();
        for (int64_t p = 0; p < parts_; ++p) {
            Part& part = part_[p];
            part.first_word = ids_.size();
            ids_.insert(ids_.end(), part.ids.begin(), part.ids.end());
            offsets_.insert(offsets_.end(), part.offsets.begin(), part.offsets.end());
            for (const int64_t end : part.line_words) ends_.push_back(part.first_word + end);
        }
        stage_ = LISTED;
    }

    const std::vector<int32_t>& ids() const { return ids_; }
    const std::vector<int64_t>& ends() const { return ends_; }
    const std::vector<int32_t>& offsets() const { return offsets_; }

    void write(const float* scores, const double* distances, int64_t words, Builder builder, int64_t threads) {
        require(stage_ >= LISTED, "the words of the block were not listed");
        require(words == int64_t(ids_.size()), "there are not as many scores as words");
        check_array("scores", scores, {words});
        if (writer_.wants_distances()) check_array("distances", distances, {words});
        stage_ = LISTED;
        for_each_part(threads, [&](Part& part) {
            Constituents constituents;
            part.out.clear();
            int64_t begin = 0;
            for (const int64_t end : part.line_words) {
                const int64_t first = part.first_word + begin;
                if (end > begin) constituents.build(scores + first, end - begin, builder, writer_.wants_ends());
                writer_.write(part.out, part.words.data() + begin, end - begin, constituents,
                              distances ? distances + first : nullptr,
                              writer_.wants_offsets() ? part.offsets.data() + 2 * begin : nullptr);
                part.out.add('\n');
                begin = end;
            }
        });
        stage_ = WRITTEN;
    }

    int64_t parts() const { return parts_; }
    const Output& output(int64_t part) const {
        require(stage_ == WRITTEN, "no trees were written");
        check_indices("part", &part, 1, parts_);
        return part_[part].out;
    }

    // While one thread uses a text no other may.
    class Use {
    public:
        explicit Use(Text* text) : text_(text) {
            require(text, "no text");
            require(!text->in_use_.test_and_set(std::memory_order_acquire), "another thread uses this text");
        }
        ~Use() { text_->in_use_.clear(std::memory_order_release); }
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;

        Text* operator->() const { return text_; }

    private:
        Text* text_;
    };

private:
    enum Stage { NOTHING, READING, READ, LISTED, WRITTEN };

    void cut(const char* text, int64_t size) {
        parts_ = 0;
        for (const char *begin = text, *last = text + size; begin < last; ++parts_) {
            const char* end = begin + std::min<int64_t>(PART, last - begin) - 1;
            end = static_cast<const char*>(std::memchr(end, '\n', last - end));
            end = end ? end + 1 : last;
            if (parts_ == static_cast<int64_t>(part_.size())) part_.emplace_back();
            part_[parts_].begin = begin;
            part_[parts_].end = begin = end;
        }
    }

    template <class Work>
    void for_each_part(int64_t threads, const Work& work) {
        share_out(parts_, threads, [&](int64_t p) { work(part_[p]); });
    }

    void split(Part& part) const {
        part.chunks.clear();
        part.starts.clear();
        part.line_chunks.clear();
        part.missing.clear();
        const char* at = part.begin;
        // The white space from `at` on; stops at a line end.
        const auto skip = [&] {
            while (at < part.end && *at != '\n') {
                const int64_t size = may_be_white(*at) ? white_space(at, part.end) : 0;
                if (size == 0) return;
                at += size;
            }
        };
        while (at < part.end) {
            const char* counted = at;  // characters of the line are counted up to here
            int64_t start = 0;
            skip();
            while (at < part.end && *at != '\n') {
                const char* begin = at++;
                if (writer_.wants_offsets()) {
                    start += characters(counted, begin);
                    counted = begin;
                    part.starts.push_back(int32_t(start));
                }
                while (at < part.end && !(may_be_white(*at) && white_space(at, part.end))) ++at;
                const std::string_view chunk(begin, at - begin);
                skip();
                const bool is_last = at == part.end || *at == '\n';
                const int64_t number = chunks_.find(chunk, is_last);
                if (number < 0) part.missing.push_back({int64_t(part.chunks.size()), chunk, is_last});
                part.chunks.push_back(number);
            }
            if (at < part.end) ++at;
            part.line_chunks.push_back(part.chunks.size());
        }
    }

    int64_t remember(const Missing& missing) {
        int64_t number = chunks_.find(missing.chunk, missing.is_last);
        if (number >= 0) return number;
        number = chunks_.add(missing.chunk, missing.is_last);
        if (const int32_t id = plain_.id(missing.chunk); id >= 0) {
            chunks_.begin_words(number);
            writer_.add_word(number, id, missing.chunk, 0, int32_t(missing.chunk.size()));
        } else {
            unknown_.push_back(number);
            unknown_text_ += missing.is_last ? '1' : '0';
            unknown_text_ += missing.chunk;
            unknown_text_ += '\n';
        }
        return number;
    }

    void find_words(Part& part) const {
        part.words.clear();
        part.line_words.clear();
        part.ids.clear();
        part.offsets.clear();
        int64_t chunk = 0;
        for (const int64_t end : part.line_chunks) {
            for (; chunk < end; ++chunk) {
                const Chunks::Entry& entry = chunks_.entry(part.chunks[chunk]);
                for (int64_t i = 0; i < entry.words; ++i) {
                    part.words.push_back(entry.first_word + i);
                    const Word& word = chunks_.words(entry)[i];
                    part.ids.push_back(word.id);
                    if (!writer_.wants_offsets()) continue;
                    part.offsets.push_back(part.starts[chunk] + word.begin);
                    part.offsets.push_back(part.starts[chunk] + word.end);
                }
            }
            part.line_words.push_back(part.words.size());
        }
    }

    std::atomic_flag in_use_ = ATOMIC_FLAG_INIT;
    Stage stage_ = NOTHING;
    bool asked_ = false;  // for the words of unknown chunks
    Chunks chunks_;
    LineWriter writer_;
    PlainWords plain_;
    const int64_t most_chunks_, most_bytes_;
    std::vector<Part> part_;
    int64_t parts_ = 0;
    std::vector<int64_t> unknown_;
    std::string unknown_text_;
    std::vector<int32_t> ids_, offsets_;
    std::vector<int64_t> ends_;
};

}  // namespace prpn
