// Linear combinations of arrays of one shape, several at once: every number is read once and written once.
//
//     Y_i = Σ_j M_ij X_j        or added to what Y_i was
#include "api.h"
#include "normalise.h"
#include "threads.h"

using namespace prpn;

namespace {

constexpr int64_t MOST = 4;      // arrays that are combined at once: their vectors stay in registers
constexpr int64_t GRAIN = 8192;  // numbers of an array a thread takes at least

struct Combination {
    const float* matrix;  // (outputs, inputs)
    int64_t outputs, inputs;
    const float* const* from;
    float* const* to;
    bool adds;

    template <int64_t INPUTS>
    void row(int64_t source, int64_t target, int64_t columns) const {
        const float* const* from = this->from;
        each_vector(columns, [&](int64_t column, int64_t n) {
            Vector x[INPUTS];
            for (int64_t j = 0; j < INPUTS; ++j) x[j] = load(from[j] + source + column, n);
            for (int64_t i = 0; i < outputs; ++i) {
                float* y = to[i] + target + column;
                Vector sum = adds ? load(y, n) : Vector{};
                for (int64_t j = 0; j < INPUTS; ++j) sum += matrix[i * INPUTS + j] * x[j];
                store(y, sum, n);
            }
        });
    }
};

}  // namespace

// For arrays (planes, rows, columns) whose columns lie beside each other; `from` and `to` are lists of them, of at most 4.
PRPN_API void prpn_combine(const float* matrix, int64_t outputs, int64_t inputs, const float* const* from,
                           float* const* to, int64_t planes, int64_t rows, int64_t columns, int64_t from_plane,
                           int64_t from_row, int64_t to_plane, int64_t to_row, int32_t adds, int64_t threads) {
    constexpr void (Combination::* by_inputs[MOST])(int64_t, int64_t, int64_t)
        const = {&Combination::row<1>, &Combination::row<2>, &Combination::row<3>, &Combination::row<4>};
    const Combination all{matrix, outputs, inputs, from, to, adds != 0};
    const auto combine = by_inputs[inputs - 1];
    const int64_t grain = std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, columns));
    parallel(planes * rows, threads, grain, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at) {
            const int64_t plane = at / rows, row = at % rows;
            (all.*combine)(plane * from_plane + row * from_row, plane * to_plane + row * to_row, columns);
        }
    });
}
