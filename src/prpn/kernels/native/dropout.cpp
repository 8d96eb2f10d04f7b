// Dropout of whole rows by a mask that is never stored (random.h).
#include "api.h"
#include "checks.h"
#include "normalise.h"
#include "random.h"
#include "threads.h"

using namespace prpn;

namespace {

// Rows a thread takes at least: less is not worth starting one.
int64_t grain_of(int64_t columns) { return std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, columns)); }

}  // namespace

// y (rows, columns) = x · mask, where the rows of x lie `stride` apart; y may be x.
PRPN_API int32_t prpn_dropout(const float* x, int64_t stride, int64_t rows, int64_t columns, uint64_t seed, float rate,
                              float* y, int64_t threads) {
    return guarded([&] {
        check_array("x", x, {rows, columns});
        check_array("y", y, {rows, columns});
        check_sizes({rows, stride});
        check_rate(rate);
        check_threads(threads);
        const Dropout dropout(seed, rate);
        parallel(rows, threads, grain_of(columns), [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
                const Dropout::Row mask = dropout.row(row);
                const float* from = x + row * stride;
                float* to = y + row * columns;
                each_vector(columns,
                            [&](int64_t i, int64_t n) { store(to + i, load(from + i, n) * mask.factors(i), n); });
            }
        });
    });
}
