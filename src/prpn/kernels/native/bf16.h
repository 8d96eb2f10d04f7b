// bf16 numbers, the upper halves of floats, and two products of them at once:
//
//     sum + a_0 w_0 + a_1 w_1        for each column of a vector; what belongs together along K are neighbours
//
// Processors with AVX512_BF16 have an instruction for it, to which numbers below 2^−126 are 0. Elsewhere the weights are
// widened to floats, and the factors are floats that were rounded.
#pragma once

#include <cstdint>
#include <cstring>

#include "units.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace prpn {

inline float from_bf16(uint16_t half) {
    const uint32_t bits = uint32_t(half) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Where the weights lie, whatever multiplies them.
struct Pairs {
    using Weight = uint16_t;
    using WeightUnit = Pair;
    static constexpr int64_t TOGETHER = 2, COLUMNS = 2 * WIDTH;

    static int64_t offset(int64_t k, int64_t column) { return (k / 2 * COLUMNS + column) * 2 + k % 2; }
};

#ifdef __AVX512BF16__

struct Bf16 : Pairs {
    using Factor = uint16_t;
    using FactorUnit = Pair;
    using Weights = __m512i;

    static Weights load(const Weight* from) { return _mm512_loadu_si512(from); }
    static Weights splat(const Factor* from) {
        int32_t pair;
        std::memcpy(&pair, from, sizeof pair);
        return _mm512_set1_epi32(pair);
    }
    static Vector add(Vector sum, Weights factors, Weights weights) {
        return Vector(_mm512_dpbf16_ps(__m512(sum), __m512bh(factors), __m512bh(weights)));
    }
};

#else

struct Bf16 : Pairs {
    using Factor = float;
    using FactorUnit = Widened;
    struct Weights {
        Vector first, second;
    };

    static Weights load(const Weight* from) {
        Integers pairs;
        std::memcpy(&pairs, from, sizeof pairs);
        const Integers lower = pairs << 16, upper = pairs & int32_t(0xffff0000);
        Weights weights;
        std::memcpy(&weights.first, &lower, sizeof lower);
        std::memcpy(&weights.second, &upper, sizeof upper);
        return weights;
    }
    static Weights splat(const Factor* from) { return {prpn::splat(from[0]), prpn::splat(from[1])}; }
    static Vector add(Vector sum, const Weights& factors, const Weights& weights) {
        return sum + factors.first * weights.first + factors.second * weights.second;
    }
};

#endif

}  // namespace prpn
