// Batch normalisation of rows X (R, C) by their own statistics with the activation after it, and back.
//
//     μ = mean x,  v = mean (x − μ)²        n = (x − μ) / √(v + ε)        y = act(γ n + β)
//     ∂a = ∂y act'(y)        ∂β = Σ ∂a        ∂γ = Σ ∂a n        ∂x = γ / √(v + ε) (∂a − ∂β / R − n ∂γ / R)
//
// Columns have nothing to do with each other: a strip of them is gone through several times while it is in the cache.
#include <algorithm>
#include <type_traits>

#include "api.h"
#include "checks.h"
#include "threads.h"
#include "vector.h"

using namespace prpn;

// Mirrors kernels/native_batch_norm.py, field by field.
struct BatchNorm {
    int64_t rows, columns, threads;
    int32_t activation;
    float epsilon, momentum;
    const float *x, *gain, *shift;           // (R, C), (C), (C)
    float *y, *mean, *inverse;               // (R, C), (C), (C): y, μ, 1 / √(v + ε)
    float *running_mean, *running_variance;  // (C), (C): they move towards μ and R / (R − 1) v
    const float* d_y;                        // (R, C)
    float *d_x, *d_gain, *d_shift;           // (R, C), (C), (C)
};

namespace {

constexpr int64_t VECTORS = 4;  // of a strip

enum Activation : int32_t { NONE = 0, RELU = 1, TANH = 2, ACTIVATIONS };

void check(const BatchNorm& b) {
    check_sizes({b.rows, b.columns});
    require(b.rows > 1, "one row has no statistics");
    check_threads(b.threads);
    check_kind("activation", b.activation, ACTIVATIONS);
    for (const float* array : {b.x, static_cast<const float*>(b.y)}) check_array("x or y", array, {b.rows, b.columns});
    for (const float* array : {b.gain, static_cast<const float*>(b.mean), static_cast<const float*>(b.inverse)}) {
        check_array("gain, mean or inverse", array, {b.columns});
    }
    if (b.d_y) {
        check_array("d_x", b.d_x, {b.rows, b.columns});
        for (const float* array : {b.d_gain, b.d_shift}) check_array("d_gain or d_shift", array, {b.columns});
    } else {
        check_array("shift", b.shift, {b.columns});
        for (const float* array : {b.running_mean, b.running_variance}) {
            check_array("running_mean or running_variance", array, {b.columns});
        }
    }
}

template <Activation ACTIVATION>
Vector activated(Vector a) {
    if (ACTIVATION == RELU) return select(a < Vector{}, Vector{}, a);  // not a number stays so
    return ACTIVATION == TANH ? hyperbolic_tangent(a) : a;
}

// act' by the activation's value
template <Activation ACTIVATION>
Vector through(Vector d_y, Vector y) {
    if (ACTIVATION == RELU) return select(y > Vector{}, d_y, Vector{});
    return ACTIVATION == TANH ? d_y * (1.0f - y * y) : d_y;
}

// A vector of columns, or what is left of them at the end of a row.
struct Columns {
    int64_t first, count;

    Vector of(const float* row) const { return load(row + first, count); }
    void put(float* row, Vector vector) const { store(row + first, vector, count); }
    void move(float* row, Vector towards, float share) const { put(row, of(row) + share * (towards - of(row))); }
};

// Calls strip(vectors, first column, columns of a vector) for all columns, shared by threads.
template <class Strip>
void each_strip(const BatchNorm& b, const Strip& strip) {
    parallel(b.columns, b.threads, WIDTH, [&](int64_t begin, int64_t end) {
        int64_t first = begin;
        for (; first + VECTORS * WIDTH <= end; first += VECTORS * WIDTH) {
            strip(std::integral_constant<int64_t, VECTORS>(), first, WIDTH);
        }
        for (; first < end; first += WIDTH) {
            strip(std::integral_constant<int64_t, 1>(), first, std::min(WIDTH, end - first));
        }
    });
}

template <int64_t SOME, Activation ACTIVATION>
void forward(const BatchNorm& b, int64_t first, int64_t count) {
    Columns columns[SOME];
    for (int64_t i = 0; i < SOME; ++i) columns[i] = {first + i * WIDTH, count};
    const int64_t R = b.rows, C = b.columns;
    const float* x = b.x;
    float* y = b.y;
    Vector mean[SOME] = {}, variance[SOME] = {}, scale[SOME], shift[SOME];
    for (int64_t row = 0; row < R; ++row) {
        for (int64_t i = 0; i < SOME; ++i) mean[i] += columns[i].of(x + row * C);
    }
    for (int64_t i = 0; i < SOME; ++i) mean[i] /= float(R);
    for (int64_t row = 0; row < R; ++row) {
        for (int64_t i = 0; i < SOME; ++i) {
            const Vector difference = columns[i].of(x + row * C) - mean[i];
            variance[i] += difference * difference;
        }
    }
    for (int64_t i = 0; i < SOME; ++i) {
        variance[i] /= float(R);
        const Vector inverse = 1.0f / square_root(variance[i] + b.epsilon);
        columns[i].put(b.mean, mean[i]);
        columns[i].move(b.running_mean, mean[i], b.momentum);
        columns[i].move(b.running_variance, variance[i] * (float(R) / float(R - 1)), b.momentum);
        columns[i].put(b.inverse, inverse);
        scale[i] = inverse * columns[i].of(b.gain);
        shift[i] = columns[i].of(b.shift) - mean[i] * scale[i];
    }
    for (int64_t row = 0; row < R; ++row) {
        for (int64_t i = 0; i < SOME; ++i) {
            columns[i].put(y + row * C, activated<ACTIVATION>(columns[i].of(x + row * C) * scale[i] + shift[i]));
        }
    }
}

template <int64_t SOME, Activation ACTIVATION>
void backward(const BatchNorm& b, int64_t first, int64_t count) {
    Columns columns[SOME];
    for (int64_t i = 0; i < SOME; ++i) columns[i] = {first + i * WIDTH, count};
    const int64_t R = b.rows, C = b.columns;
    const float *x = b.x, *y = b.y, *d_y = b.d_y;
    float* d_x = b.d_x;
    Vector mean[SOME], inverse[SOME], total[SOME] = {}, projection[SOME] = {}, scale[SOME];
    for (int64_t i = 0; i < SOME; ++i) mean[i] = columns[i].of(b.mean), inverse[i] = columns[i].of(b.inverse);
    for (int64_t row = 0; row < R; ++row) {
        for (int64_t i = 0; i < SOME; ++i) {
            const Vector d = through<ACTIVATION>(columns[i].of(d_y + row * C), columns[i].of(y + row * C));
            total[i] += d;
            projection[i] += d * ((columns[i].of(x + row * C) - mean[i]) * inverse[i]);
        }
    }
    for (int64_t i = 0; i < SOME; ++i) {
        columns[i].put(b.d_shift, total[i]);
        columns[i].put(b.d_gain, projection[i]);
        total[i] /= float(R);
        projection[i] /= float(R);
        scale[i] = columns[i].of(b.gain) * inverse[i];
    }
    for (int64_t row = 0; row < R; ++row) {
        for (int64_t i = 0; i < SOME; ++i) {
            const Vector d = through<ACTIVATION>(columns[i].of(d_y + row * C), columns[i].of(y + row * C));
            const Vector normed = (columns[i].of(x + row * C) - mean[i]) * inverse[i];
            columns[i].put(d_x + row * C, scale[i] * (d - total[i] - normed * projection[i]));
        }
    }
}

template <Activation ACTIVATION>
void run(const BatchNorm& b) {
    each_strip(b, [&](auto some, int64_t first, int64_t count) {
        if (b.d_y) backward<decltype(some)::value, ACTIVATION>(b, first, count);
        else forward<decltype(some)::value, ACTIVATION>(b, first, count);
    });
}

}  // namespace

// Forwards, or backwards where there is a gradient.
PRPN_API int32_t prpn_batch_norm(const BatchNorm* batch_norm) {
    return guarded([&] {
        require(batch_norm, "no arguments");
        const BatchNorm& b = *batch_norm;
        check(b);
        if (b.activation == RELU) return run<RELU>(b);
        if (b.activation == TANH) return run<TANH>(b);
        run<NONE>(b);
    });
}

PRPN_API int32_t prpn_batch_norm_layout(int64_t* size, int64_t* last) {
    return layout_of<BatchNorm>(size, last, offsetof(BatchNorm, d_shift));
}
