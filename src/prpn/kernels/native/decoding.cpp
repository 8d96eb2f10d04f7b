// The decoder: cross-entropies of rows X (R, E) under the logits z = X Wᵀ + b of a vocabulary, and their gradient.
//
//     loss_r = log Σ_v exp z_rv − z_{r,y_r}
//     P      = softmax(z) − onehot(y)          ∂X = P W / R          ∂W = Pᵀ (X / R)          ∂b = Σ_r P_r / R
//
// W is packed once, by columns for z and by rows for ∂X. A thread takes a few rows at a time through the whole vocabulary,
// so that their logits stay in the cache, and leaves P, rounded as a product wants it. Once P of a chunk of rows is there,
// the threads share the words of ∂W. Logits of all rows never exist, nor does P beyond a chunk.
//
//     # R rows, V vocabulary, E embedding
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "api.h"
#include "normalise.h"
#include "product.h"
#include "vector.h"

using namespace prpn;

namespace {

// Logits that a thread works on at a time: 2 MiB of them, but of two blocks of rows at least, since all of W passes by.
constexpr int64_t MOST_LOGITS = 1 << 19;

struct Decoding {
    int64_t rows, embedding, vocabulary, chunk, threads;
    const float *x, *weight, *bias;  // (R, E), (V, E), (V)
    const int64_t* targets;          // (R)
    float* losses;                   // (R)
    float *d_x, *d_weight, *d_bias;  // (R, E), (V, E), (V); none of them in evaluation
};

// Column sums that threads gather for themselves and that are added up in the order of their rows.
class ColumnSums {
public:
    void keep(int64_t first_row, std::vector<float>&& part) {
        const std::lock_guard<std::mutex> lock(guard_);
        parts_.emplace(first_row, std::move(part));
    }
    void write(int64_t count, float share, float* target) const {
        std::fill(target, target + count, 0.0f);
        for (const auto& [_, part] : parts_) {
            for (int64_t i = 0; i < count; ++i) target[i] += part[i] * share;
        }
    }

private:
    std::mutex guard_;
    std::map<int64_t, std::vector<float>> parts_;
};

template <class Kind>
class Decoder {
public:
    Decoder(const Decoding& d, Format format)
        : d(d),
          E(d.embedding),
          V(d.vocabulary),
          format(format),
          share(1.0f / float(d.rows)),
          stride(taken_stride<Kind>(V)),
          to_logits({d.weight, 1, E}, E, V, format, d.threads) {
        if (!d.d_x) return;
        to_rows.emplace(Matrix{d.weight, E, 1}, V, E, format, d.threads);
        surplus.resize((std::min(d.chunk, d.rows) + Tiles::HEIGHT) * stride);  // tiles read beyond their rows
    }

    void run() {
        const int64_t chunks = (d.rows + d.chunk - 1) / d.chunk;
        for (int64_t number = 0; number < chunks; ++number) {
            const Share chunk(d.rows, number, chunks);
            score(chunk);
            if (d.d_x) add_weight_gradient(chunk);
        }
        if (d.d_x) d_bias.write(V, share, d.d_bias);
    }

private:
    using Factor = typename Kind::Factor;
    const Decoding& d;
    const int64_t E, V;
    const Format format;
    const float share;     // of a row in the mean
    const int64_t stride;  // from one row of P to the next
    const Packed to_logits;
    std::optional<Packed> to_rows;
    Aligned<Factor> surplus;  // (rows of a chunk, V): P
    ColumnSums d_bias;

    // Losses, P and ∂X of a chunk of rows.
    void score(Share chunk) {
        const int64_t rows = chunk.end - chunk.begin;
        const int64_t at_once = std::clamp<int64_t>(MOST_LOGITS / V / MOST_ROWS, 2, HEIGHT / MOST_ROWS) * MOST_ROWS;
        const int64_t blocks = even_blocks(rows, at_once, d.threads);
        parallel(blocks, d.threads, 1, [&](int64_t begin, int64_t end) {
            Aligned<float> logits(at_once * V);
            Aligned<Factor> taken(Tiles::padded_rows(at_once) * taken_stride<Kind>(E));
            std::vector<float> bias_sum(d.d_x ? V : 0);
            for (int64_t number = begin; number < end; ++number) {
                const Share block(rows, number, blocks);
                const int64_t first = chunk.begin + block.begin, count = block.end - block.begin;
                take_rows<Kind>(Matrix{d.x + first * E, E, 1}, count, E, taken.data());
                meet(taken.data(), count, to_logits, logits.data(), {d.bias, 0});
                for (int64_t row = 0; row < count; ++row) {
                    softmax(logits.data() + row * V, first + row, surplus_row(block.begin + row), bias_sum.data());
                }
                if (!d.d_x) continue;
                meet(surplus_row(block.begin), count, *to_rows, d.d_x + first * E, ZERO);
                std::for_each(d.d_x + first * E, d.d_x + (first + count) * E, [&](float& x) { x *= share; });
            }
            if (d.d_x) d_bias.keep(chunk.begin + Share(rows, begin, blocks).begin, std::move(bias_sum));
        });
    }

    // ∂W += Pᵀ (X / R) of a chunk of rows.
    void add_weight_gradient(Share chunk) {
        const int64_t rows = chunk.end - chunk.begin, blocks = (V + HEIGHT - 1) / HEIGHT;
        Aligned<float> scaled(rows * E);
        std::transform(d.x + chunk.begin * E, d.x + chunk.end * E, scaled.data(), [&](float x) { return x * share; });
        const Packed x({scaled.data(), E, 1}, rows, E, format, d.threads);
        parallel(blocks, d.threads, 1, [&](int64_t begin, int64_t end) {
            Aligned<Factor> taken(Tiles::padded_rows(HEIGHT) * taken_stride<Kind>(rows));
            for (int64_t number = begin; number < end; ++number) {
                const Share words(V, number, blocks);
                const MatrixOf<Factor> turned{surplus.data() + words.begin, 1, stride};
                take_rows<Kind>(turned, words.end - words.begin, rows, taken.data());
                meet(taken.data(), words.end - words.begin, x, d.d_weight + words.begin * E,
                     chunk.begin > 0 ? Start{d.d_weight + words.begin * E, E} : ZERO);
            }
        });
    }

    // C (rows, N) = start + A · W, the rows of A as `take_rows` leaves them. Tiles may also read rows that other threads write,
    // and use nothing of them.
    static void meet(const Factor* a, int64_t rows, const Packed& w, float* c, Start start) {
        const Share all(0, w.panels());
        product_in_panels<Kind>(a, taken_stride<Kind>(w.depth()), rows, w, all, c, w.columns(), start);
    }

    Factor* surplus_row(int64_t row) { return d.d_x ? surplus.data() + row * stride : nullptr; }

    // The loss of one row of logits, which are overwritten, and its row of P.
    void softmax(float* z, int64_t row, Factor* to, float* bias_sum) {
        const int64_t target = d.targets[row], V = this->V;
        const float wanted = z[target];
        Vector peaks = splat(wanted);
        int64_t i = 0;
        for (; i + WIDTH <= V; i += WIDTH) peaks = maximum(peaks, load(z + i));
        float peak = largest(peaks);
        for (; i < V; ++i) peak = std::max(peak, z[i]);
        Vector sums[2] = {};
        const auto relative = [&](int64_t i, int64_t n) {
            const Vector e = exponential(load(z + i, n) - peak);
            store(z + i, e, n);
            return e;
        };
        for (i = 0; i + 2 * WIDTH <= V; i += 2 * WIDTH) {
            for (int64_t j = 0; j < 2; ++j) sums[j] += relative(i + j * WIDTH, WIDTH);
        }
        float total = sum(sums[0] + sums[1]);
        for (; i < V; i += WIDTH) {
            const int64_t n = std::min(WIDTH, V - i);
            const Vector e = relative(i, n);
            for (int64_t j = 0; j < n; ++j) total += e[j];
        }
        d.losses[row] = std::log(total) + peak - wanted;
        if (!to) return;
        const float inverse = 1.0f / total;
        z[target] -= total;
        using Unit = typename Kind::FactorUnit;
        for (int64_t start = 0; start < padded<Kind>(V); start += WIDTH * Unit::NUMBERS) {
            __builtin_prefetch(to + start + 512, 1);
            Vector p[Unit::NUMBERS] = {};
            for (int64_t j = 0; j < Unit::NUMBERS; ++j) {
                const int64_t i = start + j * WIDTH, n = std::min(WIDTH, V - i);
                if (n <= 0) break;
                p[j] = load(z + i, n) * inverse;
                store(bias_sum + i, load(bias_sum + i, n) + p[j], n);
            }
            store_units(to + start, Unit::of(p));
        }
    }
};

}  // namespace

// Cross-entropies of the targets, and the gradient of their mean where there is room for it.
PRPN_API void prpn_decoding(const float* x, const float* weight, const float* bias, const int64_t* targets,
                            int64_t rows, int64_t embedding, int64_t vocabulary, int64_t chunk, int32_t format,
                            float* losses, float* d_x, float* d_weight, float* d_bias, int64_t threads) {
    const Decoding d{rows, embedding, vocabulary, chunk, threads,  x,     weight,
                     bias, targets,   losses,     d_x,   d_weight, d_bias};
    const Format used = available(Format(format));
    with_kind(used, [&](auto kind) { Decoder<decltype(kind)>(d, used).run(); });
}
