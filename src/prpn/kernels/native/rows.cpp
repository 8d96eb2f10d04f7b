// Functions of whole rows: dropout, and softmax with its loss.
#include <cmath>
#include <map>
#include <mutex>
#include <vector>

#include "api.h"
#include "normalise.h"
#include "random.h"
#include "threads.h"

using namespace prpn;

namespace {

// Rows a thread takes at least: less is not worth starting one.
int64_t grain_of(int64_t columns) { return std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(1, columns)); }

// Column sums that threads gather for themselves and that are added up in the order of their rows.
class ColumnSums {
public:
    void keep(int64_t first_row, std::vector<float>&& part) {
        const std::lock_guard<std::mutex> lock(guard_);
        parts_.emplace(first_row, std::move(part));
    }
    void add_to(float* target) const {
        for (const auto& [_, part] : parts_) {
            for (size_t i = 0; i < part.size(); ++i) target[i] += part[i];
        }
    }

private:
    std::mutex guard_;
    std::map<int64_t, std::vector<float>> parts_;
};

}  // namespace

// y (rows, columns) = x · mask, where the rows of x lie `stride` apart; y may be x.
PRPN_API void prpn_dropout(const float* x, int64_t stride, int64_t rows, int64_t columns, uint64_t seed, float rate,
                           float* y, int64_t threads) {
    const Dropout dropout(seed, rate);
    parallel(rows, threads, grain_of(columns), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            const Dropout::Row mask = dropout.row(row);
            const float* from = x + row * stride;
            float* to = y + row * columns;
            each_vector(columns, [&](int64_t i, int64_t n) { store(to + i, load(from + i, n) * mask.factors(i), n); });
        }
    });
}

// logits (rows, columns) become softmax(logits + bias) − onehot(target), and losses (rows) the cross-entropies; the
// column sums of the new rows are added to d_bias. Without d_bias (evaluation) the rows are left as they come.
PRPN_API void prpn_cross_entropy(float* logits, int64_t rows, int64_t columns, const float* bias,
                                 const int64_t* targets, float* losses, float* d_bias, int64_t threads) {
    ColumnSums biases;
    parallel(rows, threads, grain_of(columns), [&](int64_t begin, int64_t end) {
        std::vector<float> bias_sum(d_bias ? columns : 0);
        for (int64_t row = begin; row < end; ++row) {
            float* x = logits + row * columns;
            const float wanted = x[targets[row]] + bias[targets[row]];
            Vector peaks = splat(-INFINITY);
            int64_t i = 0;
            for (; i + WIDTH <= columns; i += WIDTH) {
                const Vector shifted = load(x + i) + load(bias + i);
                store(x + i, shifted);
                peaks = maximum(peaks, shifted);
            }
            float peak = largest(peaks);
            for (; i < columns; ++i) peak = std::max(peak, x[i] += bias[i]);
            Vector sums[2] = {};
            float rest = 0;
            for (i = 0; i + 2 * WIDTH <= columns; i += 2 * WIDTH) {
                for (int64_t j = 0; j < 2; ++j) {
                    const Vector e = exponential(load(x + i + j * WIDTH) - peak);
                    store(x + i + j * WIDTH, e);
                    sums[j] += e;
                }
            }
            for (; i < columns; i += WIDTH) {
                const int64_t n = std::min(WIDTH, columns - i);
                const Vector e = exponential(load(x + i, n) - peak);
                store(x + i, e, n);
                for (int64_t j = 0; j < n; ++j) rest += e[j];
            }
            const float total = sum(sums[0] + sums[1]) + rest;
            losses[row] = std::log(total) + peak - wanted;
            if (!d_bias) continue;
            const float inverse = 1.0f / total;
            each_vector(columns, [&](int64_t i, int64_t n) { store(x + i, load(x + i, n) * inverse, n); });
            x[targets[row]] -= 1.0f;
            each_vector(columns, [&](int64_t i, int64_t n) {
                store(bias_sum.data() + i, load(bias_sum.data() + i, n) + load(x + i, n), n);
            });
        }
        if (d_bias) biases.keep(begin, std::move(bias_sum));
    });
    if (d_bias) biases.add_to(d_bias);
}
