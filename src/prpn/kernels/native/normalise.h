// Layer normalisation of one row, and its backward pass.
//
//     y  = (x − μ) / s,    s = √(σ² + ε) (paper),  σ̂ + ε (released, unbiased)
//     ∂x = (∂y − mean ∂y − κ y Σ ∂y y) / s,    κ = 1/n (paper),  s / ((n − 1) σ̂) (released)
#pragma once

#include <algorithm>

#include "vector.h"

namespace prpn {

// Calls body(column, count) for each vector of a row of n elements; count < WIDTH in the last one only. Everything that is
// called is inlined: where count is known to be WIDTH, nothing needs to look at it.
template <class Body>
__attribute__((flatten)) inline void each_vector(int64_t n, const Body& body) {
    int64_t column = 0;
    for (; column + WIDTH <= n; column += WIDTH) body(column, WIDTH);
    if (column < n) body(column, n - column);
}

struct Spread {
    float mean, scale;
};

// Σ of a function of the place over a row, in four sums that do not wait for each other.
template <class Body>
__attribute__((flatten)) inline float sum_over(int64_t n, const Body& body) {
    Vector sums[4] = {};
    int64_t i = 0;
    for (; i + 4 * WIDTH <= n; i += 4 * WIDTH) {
        for (int64_t j = 0; j < 4; ++j) sums[j] += body(i + j * WIDTH, WIDTH);
    }
    for (; i < n; i += WIDTH) sums[0] += body(i, std::min(WIDTH, n - i));
    return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// Of a row given as a function of the place; where there is nothing it gives 0.
template <class Row>
inline Spread spread_of(int64_t n, bool released, const Row& row) {
    const float mean = sum_over(n, row) / float(n);
    const float moment = sum_over(n, [&](int64_t i, int64_t count) {
        const Vector difference = count < WIDTH ? first_of(row(i, count) - mean, count) : row(i, count) - mean;
        return difference * difference;
    });
    const float scale = released ? std::sqrt(moment / float(n - 1)) + 1e-6f : std::sqrt(moment / float(n) + 1e-5f);
    return {mean, scale};
}

inline float kappa_of(float scale, int64_t n, bool released) {
    if (!released) return 1.0f / float(n);
    return scale / (std::max(scale - 1e-6f, 1e-30f) * float(n - 1));  // equal features have no spread
}

// ∂x of a vector, given mean ∂y and κ Σ ∂y y.
struct Unnormalise {
    Unnormalise(float total, float projection, int64_t n, float scale, bool released)
        : mean(total / float(n)), along(projection * kappa_of(scale, n, released)), inverse(1.0f / scale) {}

    Vector operator()(Vector d_normed, Vector normed) const { return (d_normed - mean - normed * along) * inverse; }

private:
    const float mean, along, inverse;
};

}  // namespace prpn
