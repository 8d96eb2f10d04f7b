// Layer normalisation of one row, and its backward pass.
//
//     y  = (x − μ) / s,    s = √(σ² + ε) (paper),  σ̂ + ε (released, unbiased)
//     ∂x = (∂y − mean ∂y − κ y Σ ∂y y) / s,    κ = 1/n (paper),  s / ((n − 1) σ̂) (released)
#pragma once

#include <algorithm>

#include "vector.h"

namespace prpn {

// Calls body(column, count) for each vector of a row of n elements; count < WIDTH in the last one only.
template <class Body>
inline void each_vector(int64_t n, const Body& body) {
    int64_t column = 0;
    for (; column + WIDTH <= n; column += WIDTH) body(column, WIDTH);
    if (column < n) body(column, n - column);
}

struct Spread {
    float mean, scale;
};

inline Spread spread_of(const float* x, int64_t n, bool released) {
    Vector total{};
    each_vector(n, [&](int64_t i, int64_t count) { total += load(x + i, count); });
    const float mean = sum(total) / float(n);
    Vector squares{};
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        const Vector difference = load(x + i) - mean;
        squares += difference * difference;
    }
    float rest = 0;
    for (; i < n; ++i) rest += (x[i] - mean) * (x[i] - mean);
    const float moment = sum(squares) + rest;
    const float scale = released ? std::sqrt(moment / float(n - 1)) + 1e-6f : std::sqrt(moment / float(n) + 1e-5f);
    return {mean, scale};
}

inline float kappa_of(float scale, int64_t n, bool released) {
    if (!released) return 1.0f / float(n);
    return scale / (std::max(scale - 1e-6f, 1e-30f) * float(n - 1));  // equal features have no spread
}

// ∂x in place of ∂y, given y as a function of the place.
template <class Normed>
inline void normalise_backward(float* gradient, int64_t n, float scale, bool released, const Normed& normed) {
    Vector total{}, projection{};
    each_vector(n, [&](int64_t i, int64_t count) {
        const Vector d = load(gradient + i, count);
        total += d;
        projection += d * normed(i, count);
    });
    const float mean = sum(total) / float(n), along = sum(projection) * kappa_of(scale, n, released);
    const float inverse = 1.0f / scale;
    each_vector(n, [&](int64_t i, int64_t count) {
        store(gradient + i, (load(gradient + i, count) - mean - normed(i, count) * along) * inverse, count);
    });
}

}  // namespace prpn
