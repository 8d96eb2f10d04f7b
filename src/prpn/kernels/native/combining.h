// Linear combinations of arrays of one shape, several at once: every number is read once and written once.
//
//     Y_i = Σ_j M_ij X_j        or added to what Y_i was
//
// Where an array ends earlier than others it is zero to those that read it, and not written.
#pragma once

#include <array>
#include <vector>

#include "normalise.h"
#include "threads.h"

namespace prpn {

constexpr int64_t COMBINED = 4;        // arrays that are combined at once: their vectors stay in registers
constexpr int64_t LEAST_SHARE = 8192;  // numbers of an array a thread takes at least

template <int64_t OUTPUTS, int64_t INPUTS>
using Combination = std::array<std::array<float, INPUTS>, OUTPUTS>;

template <size_t OUTPUTS, size_t INPUTS>
constexpr auto transposed(const std::array<std::array<float, INPUTS>, OUTPUTS>& matrix) {
    Combination<INPUTS, OUTPUTS> turned{};
    for (size_t i = 0; i < OUTPUTS; ++i) {
        for (size_t j = 0; j < INPUTS; ++j) turned[j][i] = matrix[i][j];
    }
    return turned;
}

// An array (planes, rows, columns), columns beside each other.
template <class Number>
struct ArrayOf {
    Number* place;
    int64_t planes, plane_stride, row_stride;

    Number* row(int64_t plane, int64_t row) const {
        return plane < planes ? place + plane * plane_stride + row * row_stride : nullptr;
    }
};

template <int64_t COUNT, class Number = float>
using Arrays = std::array<ArrayOf<Number>, COUNT>;

// One row of all arrays; nothing is read where there is no array any more.
template <size_t OUTPUTS, size_t INPUTS>
void combine_row(const std::array<std::array<float, INPUTS>, OUTPUTS>& matrix, const float* const (&from)[INPUTS],
                 float* const (&to)[OUTPUTS], int64_t columns, bool adds) {
    each_vector(columns, [&](int64_t column, int64_t n) {
        Vector x[INPUTS];
        for (size_t j = 0; j < INPUTS; ++j) x[j] = load(from[j] + column, n);
        for (size_t i = 0; i < OUTPUTS; ++i) {
            if (!to[i]) continue;
            Vector sum = adds ? load(to[i] + column, n) : Vector{};
            for (size_t j = 0; j < INPUTS; ++j) {
                if (matrix[i][j] != 0) sum += matrix[i][j] * x[j];  // 0 times infinity is not a number
            }
            store(to[i] + column, sum, n);
        }
    });
}

template <size_t OUTPUTS, size_t INPUTS, class Number>
void combine(const std::array<std::array<float, INPUTS>, OUTPUTS>& matrix,
             const std::array<ArrayOf<Number>, INPUTS>& inputs, const std::array<ArrayOf<float>, OUTPUTS>& outputs,
             int64_t rows, int64_t columns, bool adds, int64_t threads) {
    static_assert(INPUTS <= COMBINED && OUTPUTS <= COMBINED);
    const std::vector<float> nothing(columns);
    int64_t planes = 0;
    for (const auto& output : outputs) planes = std::max(planes, output.planes);
    const int64_t grain = std::max<int64_t>(1, LEAST_SHARE / std::max<int64_t>(1, columns));
    parallel(planes * rows, threads, grain, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at) {
            const float* from[INPUTS];
            float* to[OUTPUTS];
            for (size_t j = 0; j < INPUTS; ++j) {
                const float* row = inputs[j].row(at / rows, at % rows);
                from[j] = row ? row : nothing.data();
            }
            for (size_t i = 0; i < OUTPUTS; ++i) to[i] = outputs[i].row(at / rows, at % rows);
            combine_row(matrix, from, to, columns, adds);
        }
    });
}

// The sum of all rows of a matrix (rows, columns).
inline void sum_of_rows(const float* from, int64_t row_stride, int64_t rows, int64_t columns, float* to,
                        int64_t threads) {
    parallel(columns, threads, WIDTH, [&](int64_t begin, int64_t end) {
        std::fill(to + begin, to + end, 0.0f);
        for (int64_t row = 0; row < rows; ++row) {
            const float* some = from + row * row_stride + begin;
            each_vector(end - begin, [&](int64_t i, int64_t n) {
                store(to + begin + i, load(to + begin + i, n) + load(some + i, n), n);
            });
        }
    });
}

}  // namespace prpn
