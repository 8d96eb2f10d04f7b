// Chunks of text (what stands between two white spaces) and the words that a tokenizer made of them. Words are a
// function of their chunk and of whether it is the last of its line, so a chunk is asked about once and remembered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace prpn {

// How many bytes of white space, in the sense of Python's str.split(), stand at the beginning of [at, end): 0 if none.
inline int64_t white_space(const char* at, const char* end) {
    const auto byte = [at](int64_t i) { return static_cast<unsigned char>(at[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return first == ' ' || (first >= 0x09 && first <= 0x0d) || (first >= 0x1c && first <= 0x1f);
    if (first == 0xc2 && end - at >= 2) return byte(1) == 0x85 || byte(1) == 0xa0 ? 2 : 0;  // U+0085, U+00A0
    if (first < 0xe1 || first > 0xe3 || end - at < 3) return 0;
    const int point = (first & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63);
    const bool is_white = point == 0x1680 || (point >= 0x2000 && point <= 0x200a) || point == 0x2028 ||
                          point == 0x2029 || point == 0x202f || point == 0x205f || point == 0x3000;
    return is_white ? 3 : 0;
}

// Whether a byte may begin white space, or a line end: most do not, and need no closer look.
struct MayBeWhite {
    bool table[256] = {};
    constexpr MayBeWhite() {
        for (int byte = 0x09; byte <= 0x0d; ++byte) table[byte] = true;
        for (int byte = 0x1c; byte <= 0x20; ++byte) table[byte] = true;
        table[0xc2] = table[0xe1] = table[0xe2] = table[0xe3] = true;
    }
    constexpr bool operator()(char byte) const { return table[static_cast<unsigned char>(byte)]; }
};
constexpr MayBeWhite may_be_white;

inline bool is_letter(char byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'); }

// A hash of bytes, eight at a time; the last eight may overlap those before, as the halves of fewer than eight may.
inline uint64_t hash(std::string_view text, uint64_t seed) {
    const auto mix = [](uint64_t a, uint64_t b) {
        const __uint128_t product = static_cast<__uint128_t>(a) * b;
        return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    };
    const auto eight = [](const char* from) {
        uint64_t bytes;
        std::memcpy(&bytes, from, 8);
        return bytes;
    };
    const auto four = [](const char* from) {
        uint32_t bytes;
        std::memcpy(&bytes, from, 4);
        return uint64_t{bytes};
    };
    constexpr uint64_t multiplier = 0x9e3779b97f4a7c15;
    const size_t size = text.size();
    const char* const from = text.data();
    uint64_t state = (size * 2 + seed + 1) * multiplier, tail = 0;
    if (size >= 8) {
        for (size_t i = 0; i + 8 < size; i += 8) state = mix(state ^ eight(from + i), multiplier);
        tail = eight(from + size - 8);
    } else if (size >= 4) {
        tail = four(from) << 32 | four(from + size - 4);
    } else {
        for (const char byte : text) tail = tail << 8 | static_cast<unsigned char>(byte);
    }
    return mix(state ^ tail, multiplier);
}

// Finds numbers 0, 1, 2, … of things by their hash; what is the same thing is for the caller to say.
class Index {
public:
    template <class Same>
    int64_t find(uint64_t hash, const Same& same) const {  // −1: not there
        if (slots_.empty()) return -1;
        for (uint64_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
            if (slots_[at] == 0) return -1;
            if ((slots_[at] ^ hash) >> NUMBER_BITS) continue;
            const int64_t number = static_cast<int64_t>(slots_[at] & NUMBERS) - 1;
            if (same(number)) return number;
        }
    }

    template <class HashOf>
    void add(uint64_t hash, const HashOf& hash_of) {
        if (2 * (count_ + 1) > static_cast<int64_t>(slots_.size())) {
            slots_.assign(slots_.empty() ? 1024 : 2 * slots_.size(), 0);
            for (int64_t number = 0; number < count_; ++number) place(hash_of(number), number);
        }
        place(hash, count_++);
    }

    void clear() {
        slots_.assign(slots_.size(), 0);
        count_ = 0;
    }

private:
    static constexpr int NUMBER_BITS = 40;
    static constexpr uint64_t NUMBERS = (uint64_t{1} << NUMBER_BITS) - 1;

    void place(uint64_t hash, int64_t number) {
        uint64_t at = hash & (slots_.size() - 1);
        while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
        slots_[at] = (hash & ~NUMBERS) | static_cast<uint64_t>(number + 1);
    }

    std::vector<uint64_t> slots_;  // the upper bits of the hash, and the number + 1; 0 is empty
    int64_t count_ = 0;
};

// A word as it is written in the tree and, only for JSON, as a string of its own; and which characters of its chunk it
// stands for.
struct Word {
    int32_t id, begin, end;
    int64_t at, written, quoted;  // both follow each other in the bytes
};

// How many characters of UTF-8 these bytes are: all but those that go on with one.
inline int64_t characters(const char* from, const char* to) {
    return std::count_if(from, to, [](char byte) { return (byte & 0xc0) != 0x80; });
}

class Chunks {
public:
    // How far beyond the end of a word one may read.
    static constexpr int64_t SLACK = 16;

    struct Entry {
        uint64_t hash;
        int64_t at, size;  // the chunk itself
        int64_t first_word, words;
        bool is_last;
    };

    const Entry& entry(int64_t number) const { return entries_[number]; }
    const Word* words(const Entry& entry) const { return words_.data() + entry.first_word; }
    const Word& word(int64_t number) const { return words_[number]; }
    const char* bytes(int64_t at) const { return bytes_.data() + at; }
    std::string_view text(const Entry& entry) const { return {bytes_.data() + entry.at, size_t(entry.size)}; }
    int64_t count() const { return entries_.size(); }
    int64_t size() const { return bytes_.size() + words_.size() * sizeof(Word); }

    int64_t find(std::string_view chunk, bool is_last) const {
        return index_.find(hash(chunk, is_last), [&](int64_t number) {
            const Entry& entry = entries_[number];
            return entry.is_last == is_last && text(entry) == chunk;
        });
    }

    int64_t add(std::string_view chunk, bool is_last) {
        const uint64_t code = hash(chunk, is_last);
        entries_.push_back({code, append(chunk), int64_t(chunk.size()), 0, 0, is_last});
        try {
            index_.add(code, [&](int64_t number) { return entries_[number].hash; });
        } catch (...) {  // numbers of the index are places among the entries
            entries_.pop_back();
            throw;
        }
        return count() - 1;
    }

    // Words are defined chunk after chunk: those of one chunk stand side by side.
    void begin_words(int64_t number) { entries_[number].first_word = words_.size(); }
    void add_word(int64_t number, Word word, std::string_view written, std::string_view quoted) {
        word.at = append(written);
        append(quoted);
        word.written = written.size();
        word.quoted = quoted.size();
        words_.push_back(word);
        ++entries_[number].words;
    }

    void clear() {
        index_.clear();
        entries_.clear();
        words_.clear();
        bytes_.clear();
    }

private:
    int64_t append(std::string_view text) {
        if (bytes_.empty()) bytes_.resize(SLACK);
        const int64_t at = bytes_.size() - SLACK;
        bytes_.resize(bytes_.size() + text.size());
        std::copy(text.begin(), text.end(), bytes_.begin() + at);
        return at;
    }

    Index index_;
    std::vector<Entry> entries_;
    std::vector<Word> words_;
    std::vector<char> bytes_;
};

}  // namespace prpn
