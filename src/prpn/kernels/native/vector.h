// Vectors of floats as wide as the instruction set allows, in the compiler's own vector notation, and the elementary
// functions on them. The last vector of a row may be partial: `load` and `store` take the number of elements.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace prpn {

#ifdef __AVX512F__
constexpr int64_t WIDTH = 16;
#else
constexpr int64_t WIDTH = 8;
#endif

typedef float Vector __attribute__((vector_size(4 * WIDTH)));
typedef int32_t Integers __attribute__((vector_size(4 * WIDTH)));

inline Vector splat(float value) { return value - Vector{}; }  // exact, and nothing is left to compute

inline Vector load(const float* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

inline void store(float* to, Vector vector) { std::memcpy(to, &vector, sizeof vector); }

// `count` elements of 1 … WIDTH; the others are 0.
inline Vector load(const float* from, int64_t count) {
    if (count >= WIDTH) return load(from);
    Vector vector{};
    std::memcpy(&vector, from, count * sizeof(float));
    return vector;
}

inline void store(float* to, Vector vector, int64_t count) {
    if (count >= WIDTH) return store(to, vector);
    std::memcpy(to, &vector, count * sizeof(float));
}

// The first `count` elements; the others are 0.
inline Vector first_of(Vector vector, int64_t count) {
    Vector some{};
    std::memcpy(&some, &vector, count * sizeof(float));
    return some;
}

inline Vector select(Integers condition, Vector yes, Vector no) { return condition ? yes : no; }

// a > b ? a : b and a < b ? a : b, for which GCC does not find the instruction.
#ifdef __AVX512F__
inline Vector maximum(Vector a, Vector b) { return _mm512_maskz_max_ps(0xffff, a, b); }
inline Vector minimum(Vector a, Vector b) { return _mm512_maskz_min_ps(0xffff, a, b); }
#else
inline Vector maximum(Vector a, Vector b) { return _mm256_max_ps(a, b); }
inline Vector minimum(Vector a, Vector b) { return _mm256_min_ps(a, b); }
#endif

inline Vector square_root(Vector x) {
    for (int64_t i = 0; i < WIDTH; ++i) x[i] = std::sqrt(x[i]);
    return x;
}

// Which element each one meets. A table, for GCC makes up such numbers one by one wherever they are needed.
template <int32_t APART>
struct Partners {
    constexpr Partners() : of() {
        for (int32_t i = 0; i < WIDTH; ++i) of[i] = i ^ APART;
    }
    int32_t of[WIDTH];
};
template <int32_t APART>
inline constexpr Partners<APART> PARTNERS;

// All elements joined into one: those of both halves, quarters, … meet.
template <int32_t APART = WIDTH / 2, class Join>
inline float joined(Vector vector, const Join& join) {
    Integers partners;
    std::memcpy(&partners, PARTNERS<APART>.of, sizeof partners);
    vector = join(vector, __builtin_shuffle(vector, partners));
    if constexpr (APART > 1) return joined<APART / 2>(vector, join);
    else return vector[0];
}

inline float sum(Vector vector) {
    return joined(vector, [](Vector a, Vector b) { return a + b; });
}

inline float largest(Vector vector) { return joined(vector, maximum); }

// e^x = 2^k e^r with k = round(x / ln 2) and |r| ≤ ln 2 / 2, where e^r − 1 is r + r² times a polynomial of degree 5.
struct Power {
    explicit Power(Vector x) {
        const Vector shifted = x * 1.44269504f + 12582912.0f;  // the fraction falls off: 1.5 · 2^23
        k = shifted - 12582912.0f;
        const Vector r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
        Vector p = splat(1.9875691500e-4f);
        p = p * r + 1.3981999507e-3f;
        p = p * r + 8.3334519073e-3f;
        p = p * r + 4.1665795894e-2f;
        p = p * r + 1.6666665459e-1f;
        p = p * r + 5.0000001201e-1f;
        rest = p * r * r + r;
    }

    Vector k, rest;  // rest = e^r − 1
};

inline Vector power_of_two(Vector k) {
    const Integers bits = (__builtin_convertvector(k, Integers) + 127) << 23;
    Vector power;
    std::memcpy(&power, &bits, sizeof power);
    return power;
}

// Exact to one unit in the last place; below −87.3 it is 0, above 88.7 it is as large as floats go, of not-a-number it is
// not a number: of two operands one of which is none, `maximum` and `minimum` give the second.
inline Vector exponential(Vector x) {
    constexpr float LOWEST = -87.33654f, HIGHEST = 88.72283f;
#ifdef __AVX512F__
    const Power power(minimum(splat(HIGHEST), x));
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, splat(LOWEST), _CMP_NLT_UQ), power.rest + 1.0f, power.k);
#else
    const Power power(minimum(splat(HIGHEST), maximum(splat(LOWEST), x)));
    // 2^k in two halves, since k itself may be one more than an exponent holds.
    const Vector half = __builtin_convertvector(__builtin_convertvector(power.k, Integers) >> 1, Vector);
    const Vector result = (power.rest + 1.0f) * power_of_two(half) * power_of_two(power.k - half);
    return select(x == x, select(x < splat(LOWEST), Vector{}, result), x);
#endif
}

// 1 / x for x ≥ 1, exact to one or two units in the last place: a division takes longer than an estimate that is mended.
inline Vector inverse(Vector x) {
#ifdef __AVX512F__
    const Vector estimate = _mm512_maskz_rcp14_ps(0xffff, x);
    return estimate * (2.0f - x * estimate);
#else
    return 1.0f / x;
#endif
}

inline Vector sigmoid(Vector x) { return inverse(1.0f + exponential(-x)); }

// y / (y + 2) with y = e^{2x} − 1 = 2^k (e^r − 1) + (2^k − 1), which loses no digits near 0; beyond ±10 it is ±1, and rounding
// takes it no further.
inline Vector hyperbolic_tangent(Vector x) {
    const Power power(minimum(splat(20.0f), maximum(splat(-20.0f), x + x)));
    const Vector scale = power_of_two(power.k), y = power.rest * scale + (scale - 1.0f);
    return minimum(splat(1.0f), maximum(splat(-1.0f), y * inverse(y + 2.0f)));
}

}  // namespace prpn
