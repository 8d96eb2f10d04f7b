// What a product takes at once along K, in 32 bits: an fp32 number, or two bf16 numbers that are neighbours along K.
//
// A unit is made of numbers that lie beside each other in memory (`along` K) or in lines of their own (`across` it); a
// square of them turned over makes one of the other.
#pragma once

#include <type_traits>

#include "vector.h"

namespace prpn {

typedef uint32_t Units __attribute__((vector_size(4 * WIDTH)));

inline Units units_of(Vector vector) {
    Units units;
    std::memcpy(&units, &vector, sizeof units);
    return units;
}

inline void store_units(void* to, Units units) { std::memcpy(to, &units, sizeof units); }

// bf16 numbers in the upper halves, what is below them not yet cut off: rounded to the nearest, ties to even; what is not
// a number stays so.
inline Units rounded(Vector vector) {
    const Units bits = units_of(vector);
    const Units up = bits + 0x7fffu + (bits >> 16 & 1u);
    return vector == vector ? up : (bits | 0x400000u);
}

// The first `count` halves of a line, the others 0; count may be anything.
inline Units halves(const uint16_t* from, int64_t count) {
    typedef uint16_t Some __attribute__((vector_size(2 * WIDTH)));
    Some some{};
    if (count >= WIDTH) std::memcpy(&some, from, sizeof some);
    else if (count > 0) std::memcpy(&some, from, count * sizeof(uint16_t));
    return __builtin_convertvector(some, Units);
}

// Numbers as vectors, whether they were rounded or not.
inline Vector widened(const float* from, int64_t count) { return load(from, count); }
inline Vector widened(const uint16_t* from, int64_t count) {
    const Units bits = halves(from, count) << 16;
    Vector vector;
    std::memcpy(&vector, &bits, sizeof vector);
    return vector;
}

// The first `count` numbers of a line, the others 0; count may be anything.
inline Vector load_some(const float* from, int64_t count) { return count > 0 ? load(from, count) : Vector{}; }

// An fp32 number.
struct Single {
    static constexpr int64_t NUMBERS = 1;

    static Units of(const Vector (&numbers)[1]) { return units_of(numbers[0]); }
    static Units along(const float* from, int64_t count) { return of({load_some(from, count)}); }
    static Units across(const float* const (&lines)[1], int64_t count) { return along(lines[0], count); }
};

// A bf16 number that is widened again.
struct Widened {
    static constexpr int64_t NUMBERS = 1;

    static Units of(const Vector (&numbers)[1]) { return rounded(numbers[0]) & 0xffff0000u; }
    static Units along(const float* from, int64_t count) { return of({load_some(from, count)}); }
    static Units across(const float* const (&lines)[1], int64_t count) { return along(lines[0], count); }
};

// Two bf16 numbers.
struct Pair {
    static constexpr int64_t NUMBERS = 2;

    static Units of(const Vector (&numbers)[2]) {
#ifdef __AVX512BF16__
        return Units(
            _mm512_cvtne2ps_pbh(numbers[1], numbers[0]));  // which counts denormal numbers as 0, as products do
#else
        Halves upper;  // the odd ones of both
        for (int64_t i = 0; i < 2 * WIDTH; ++i) upper[i] = uint16_t(2 * i + 1);
        return Units(__builtin_shuffle(Halves(rounded(numbers[0])), Halves(rounded(numbers[1])), upper));
#endif
    }
    static Units along(const float* from, int64_t count) {
        return of({load_some(from, count), load_some(from + WIDTH, count - WIDTH)});
    }
    static Units across(const float* const (&lines)[2], int64_t count) {
        return rounded(load_some(lines[0], count)) >> 16 | (rounded(load_some(lines[1], count)) & 0xffff0000u);
    }
    // Of numbers that are rounded already.
    static Units across(const uint16_t* const (&lines)[2], int64_t count) {
        return halves(lines[0], count) | halves(lines[1], count) << 16;
    }

private:
    typedef uint16_t Halves __attribute__((vector_size(4 * WIDTH)));
};

// Rows and columns change places. In stage s, halves of blocks of 2s rows and 2s columns do.
inline void turn_over(Units (&square)[WIDTH]) {
    const auto stage = [&](auto step) {
        constexpr int64_t S = decltype(step)::value;
        Units left, right;  // from which of both rows each column comes, those of the second counted from WIDTH on
        for (int64_t i = 0; i < WIDTH; ++i) {
            left[i] = uint32_t(i & S ? i - S + WIDTH : i);
            right[i] = uint32_t(i & S ? i + WIDTH : i + S);
        }
#pragma GCC unroll 16
        for (int64_t row = 0; row < WIDTH; ++row) {
            if (row & S) continue;
            const Units upper = square[row], lower = square[row + S];
            square[row] = __builtin_shuffle(upper, lower, left);
            square[row + S] = __builtin_shuffle(upper, lower, right);
        }
    };
    stage(std::integral_constant<int64_t, 1>());
    stage(std::integral_constant<int64_t, 2>());
    stage(std::integral_constant<int64_t, 4>());
    if constexpr (WIDTH == 16) stage(std::integral_constant<int64_t, 8>());
}

}  // namespace prpn
