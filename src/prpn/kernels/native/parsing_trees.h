// From distances to a tree and its text: trees/from_distances.py has the mathematics, trees/brackets.py the notation.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace prpn {

enum class Builder : int32_t { paper, unbiased, right_leaning, left_leaning };
constexpr int32_t BUILDERS = 4;

// A buffer that grows; what is asked for has room for a few bytes more, so that short copies may be of fixed size.
class Output {
public:
    static constexpr int64_t SLACK = 16;

    char* room(int64_t size) {
        if (size_ + size + SLACK > static_cast<int64_t>(bytes_.size())) {
            bytes_.resize(size_ + size + SLACK + bytes_.size());
        }
        return bytes_.data() + size_;
    }
    void grow(int64_t size) { size_ += size; }

    void add(char byte) {
        *room(1) = byte;
        grow(1);
    }
    void add(std::string_view text) {
        std::memcpy(room(text.size()), text.data(), text.size());
        grow(text.size());
    }
    void add(const char* from, int64_t size) {  // `from` can be read for SLACK bytes more
        char* to = room(size);
        if (size <= SLACK) {
            std::memcpy(to, from, SLACK);
        } else {
            std::memcpy(to, from, size);
        }
        grow(size);
    }
    void add(char byte, int64_t times) {
        char* to = room(times);
        if (times <= SLACK) {
            std::memset(to, byte, SLACK);
        } else {
            std::memset(to, byte, times);
        }
        grow(times);
    }
    void add_integer(int64_t number) {
        char* to = room(20);
        grow(std::to_chars(to, to + 20, number).ptr - to);
    }

    void clear() { size_ = 0; }
    const char* data() const { return bytes_.data(); }
    int64_t size() const { return size_; }

private:
    std::vector<char> bytes_;
    int64_t size_ = 0;
};

// The constituents of two words and more over n words: how many open before and close after each word, and where those
// that open at a word end, the larger ones first.
class Constituents {
public:
    void build(const float* scores, int64_t n, Builder builder, bool with_ends) {
        opening.assign(n, 0);
        closing.assign(n, 0);
        if (n < 2) {
            ends.clear();
            return;
        }
        score_gaps(scores, n, builder);
        outrank();
        for_each([&](int64_t start, int64_t end) {
            ++opening[start];
            ++closing[end - 1];
        });
        if (!with_ends) return;
        next_.resize(n);
        int64_t total = 0;
        for (int64_t i = 0; i < n; ++i) {
            next_[i] = total;
            total += opening[i];
        }
        ends.resize(total);
        for_each([&](int64_t start, int64_t end) { ends[next_[start]++] = end; });
    }

    std::vector<int64_t> opening, closing, ends;

private:
    static constexpr double LEAN = 0.75;

    void score_gaps(const float* scores, int64_t n, Builder builder) {
        const auto halfway = [](double own, double neighbour) { return (own + std::max(own, neighbour)) / 2; };
        const auto score = [&](int64_t i) -> double {
            if (builder == Builder::paper) return std::max(scores[i - 1], scores[i]);
            if (builder == Builder::unbiased) return scores[i];
            const double previous = scores[i > 1 ? i - 1 : i];
            if (builder == Builder::right_leaning) return halfway(scores[i], previous) - LEAN * i;
            return halfway(previous, i < n - 1 ? scores[i] : previous) + LEAN * i;
        };
        gaps_.resize(n - 1);
        for (int64_t i = 1; i < n; ++i) gaps_[i - 1] = score(i);
    }

    // before(i) = the last j < i with g_j ≥ g_i, or −1; after(i) = the first k > i with g_k > g_i, or how many there are;
    // gap i stands before word i + 1.
    void outrank() {
        const int64_t n = gaps_.size();
        before_.resize(n);
        after_.assign(n, n);
        waiting_.resize(n + 1);
        int64_t waiting = 0;
        for (int64_t i = 0; i < n; ++i) {
            while (waiting && gaps_[waiting_[waiting - 1]] < gaps_[i]) after_[waiting_[--waiting]] = i;
            before_[i] = waiting ? waiting_[waiting - 1] : -1;
            waiting_[waiting++] = i;
        }
    }

    template <class Visit>
    void for_each(const Visit& visit) const {
        for (int64_t i = static_cast<int64_t>(gaps_.size()) - 1; i >= 0; --i) visit(before_[i] + 1, after_[i] + 1);
    }

    std::vector<double> gaps_;
    std::vector<int64_t> before_, after_, waiting_, next_;
};

// Writes repr(round(value, 6)) of Python.
inline void add_rounded(Output& out, double value) {
    if (!std::isfinite(value)) return out.add(std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
    constexpr int64_t LONGEST = 330, DECIMALS = 6, CERTAIN = 15;
    char fixed[LONGEST];
    const char* end = std::to_chars(fixed, fixed + LONGEST, value, std::chars_format::fixed, DECIMALS).ptr;
    // A decimal of 15 digits is the shortest of its double, but for zeros at its end.
    if (end - fixed <= CERTAIN && (std::fabs(value) >= 1e-4 || std::fabs(value) < 4e-7)) {
        while (end[-1] == '0' && end[-2] != '.') --end;
        return out.add(std::string_view(fixed, end - fixed));
    }
    double rounded = 0;
    std::from_chars(fixed, end, rounded);
    char shortest[LONGEST];
    const char* last =
        std::to_chars(shortest, shortest + LONGEST, rounded, std::chars_format::scientific).ptr;  // -d.ddde-XX
    const char* mark = shortest;
    while (*mark != 'e') ++mark;
    int exponent = 0;
    std::from_chars(mark[1] == '+' ? mark + 2 : mark + 1, last, exponent);
    if (rounded != 0 && (exponent < -4 || exponent >= 16)) return out.add(std::string_view(shortest, last - shortest));
    const auto plain = std::to_chars(shortest, shortest + LONGEST, rounded, std::chars_format::fixed);
    const std::string_view text(shortest, plain.ptr - shortest);
    out.add(text);
    if (text.find('.') == std::string_view::npos) out.add(std::string_view(".0"));
}

}  // namespace prpn
