// Linear combinations of arrays of one shape, several at once: every number is read once and written once.
//
//     Y_i = Σ_j M_ij X_j        or added to what Y_i was
//
// Where an array ends earlier than others it is zero to those that read it, and not written.
#include <vector>

#include "api.h"
#include "normalise.h"
#include "threads.h"

using namespace prpn;

// Arrays (planes, rows, columns) that are equally strided, columns beside each other: their places and their planes. Mirrors
// kernels/combining.py, field by field.
struct Arrays {
    int64_t count;
    float* const* places;
    const int64_t* planes;
    int64_t plane_stride, row_stride;

    float* row(int64_t i, int64_t plane, int64_t row) const {
        return plane < planes[i] ? places[i] + plane * plane_stride + row * row_stride : nullptr;
    }
};

namespace {

constexpr int64_t MOST = 4;      // arrays that are combined at once: their vectors stay in registers
constexpr int64_t GRAIN = 8192;  // numbers of an array a thread takes at least

// One row of all arrays; nothing is read where there is no array any more.
template <int64_t INPUTS>
void combine(const float* matrix, const float* const* from, float* const* to, int64_t outputs, int64_t columns,
             bool adds) {
    each_vector(columns, [&](int64_t column, int64_t n) {
        Vector x[INPUTS];
        for (int64_t j = 0; j < INPUTS; ++j) x[j] = load(from[j] + column, n);
        for (int64_t i = 0; i < outputs; ++i) {
            if (!to[i]) continue;
            Vector sum = adds ? load(to[i] + column, n) : Vector{};
            for (int64_t j = 0; j < INPUTS; ++j) sum += matrix[i * INPUTS + j] * x[j];
            store(to[i] + column, sum, n);
        }
    });
}

}  // namespace

// M is (outputs, inputs), of at most 4 each.
PRPN_API void prpn_combine(const float* matrix, const Arrays* inputs, const Arrays* outputs, int64_t rows,
                           int64_t columns, int32_t adds, int64_t threads) {
    using Combine = void (*)(const float*, const float* const*, float* const*, int64_t, int64_t, bool);
    constexpr Combine by_inputs[MOST] = {combine<1>, combine<2>, combine<3>, combine<4>};
    const Combine run = by_inputs[inputs->count - 1];
    const std::vector<float> nothing(columns);
    const int64_t planes = *std::max_element(outputs->planes, outputs->planes + outputs->count);
    const int64_t grain = std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, columns));
    parallel(planes * rows, threads, grain, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at) {
            const float* from[MOST];
            float* to[MOST];
            for (int64_t j = 0; j < inputs->count; ++j) {
                const float* row = inputs->row(j, at / rows, at % rows);
                from[j] = row ? row : nothing.data();
            }
            for (int64_t i = 0; i < outputs->count; ++i) to[i] = outputs->row(i, at / rows, at % rows);
            run(matrix, from, to, outputs->count, columns, adds != 0);
        }
    });
}
