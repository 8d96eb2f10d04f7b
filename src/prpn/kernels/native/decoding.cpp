// The decoder: cross-entropies of rows X (R, E) under the logits z = X Wᵀ + b of a vocabulary, and their gradient.
//
//     e_rv   = exp(z_rv − m_r),    n_r = Σ_v e_rv           loss_r = log n_r + m_r − z_{r,y_r}
//     P_rv   = e_rv − n_r [v = y_r]                         softmax − onehot is P / n
//     s_r    = 1 / (n_r R)          ∂X = s (P W)            ∂W = Pᵀ (s X)            ∂b = Pᵀ s
//
// W is packed once, by columns for z and by rows for ∂X. A thread takes some rows at a time through the vocabulary, stretch by
// stretch: their logits become exponentials, rounded as a product wants them, and meet W again before they leave the cache.
// What they are to be divided by, and P of the target, is known at the end of the row. Stretches of P lie one after the
// other; once P of a chunk of rows is there, the threads share the words of ∂W.
//
// Any m_r will do that keeps e within the range of floats: it is the largest logit of the first stretch, and only where another
// is so much larger that n_r or P might overflow, the row is gone through once more with the largest of all.
//
//     # R rows, V vocabulary, E embedding
#include <algorithm>
#include <cmath>
#include <vector>

#include "api.h"
#include "checks.h"
#include "normalise.h"
#include "product.h"
#include "vector.h"

using namespace prpn;

namespace {

// Panels of W in a stretch: its words are a multiple of HEIGHT.
constexpr int64_t STRETCH = 48;

// Sums of exponentials beyond which a row is gone through once more: what is left of the range is for X and W.
constexpr float LARGEST_SUM = 1e18f;

struct Decoding {
    int64_t rows, embedding, vocabulary, chunk, threads;
    const float *x, *weight, *bias;  // (R, E), (V, E), (V)
    const int64_t* targets;          // (R)
    float* losses;                   // (R)
    float *d_x, *d_weight, *d_bias;  // (R, E), (V, E), (V); none of them in evaluation
};

void check(const Decoding& d) {
    check_array("x", d.x, {d.rows, d.embedding});
    check_array("weight", d.weight, {d.vocabulary, d.embedding});
    check_array("bias", d.bias, {d.vocabulary});
    check_array("targets", d.targets, {d.rows});
    check_array("losses", d.losses, {d.rows});
    check_threads(d.threads);
    require(d.chunk >= 1, "a chunk has rows");
    check_sizes({std::min(d.chunk, d.rows), d.vocabulary});
    const bool wanted = d.d_x || d.d_weight || d.d_bias;
    if (wanted) {
        require(d.rows >= 1, "no rows: their mean loss is not defined");
        check_array("d_x", d.d_x, {d.rows, d.embedding});
        check_array("d_weight", d.d_weight, {d.vocabulary, d.embedding});
        check_array("d_bias", d.d_bias, {d.vocabulary});
    }
    check_indices("target", d.targets, d.rows, d.vocabulary);
}

// What is known of a row while its logits pass by, lane by lane.
struct Passing {
    Vector sums, peaks;
    float reference, wanted;

    void begin(float value) { sums = Vector{}, peaks = splat(-INFINITY), reference = value; }
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
          to_logits({d.weight, 1, E}, E, V, format, d.threads) {
        if (!d.d_x) return;
        scales.resize(d.rows);
        for (int64_t first = 0; first < V; first += WORDS) {
            to_rows.emplace_back(Matrix{d.weight + first * E, E, 1}, std::min(WORDS, V - first), E, format, d.threads);
        }
        const int64_t lines = int64_t(to_rows.size()) * std::min(d.chunk, d.rows);
        surplus.resize((lines + Tiles::HEIGHT) *
                       stride);  // tiles read beyond their rows, what others write, and drop it
    }

    void run() {
        const int64_t chunks = (d.rows + d.chunk - 1) / d.chunk;
        for (int64_t number = 0; number < chunks; ++number) {
            const Share chunk(d.rows, number, chunks);
            score(chunk);
            if (d.d_x) add_weight_gradient(chunk);
        }
    }

private:
    using Factor = typename Kind::Factor;
    static constexpr int64_t WORDS = STRETCH * Kind::COLUMNS;  // of a stretch
    static_assert(WORDS % HEIGHT == 0);
    const Decoding& d;
    const int64_t E, V;
    const Format format;
    const float share;                                              // 1 / R
    const int64_t stride = taken_stride<Kind>(std::min(WORDS, V));  // from one row of a stretch of P to the next
    const Packed to_logits;
    std::vector<Packed> to_rows;  // of each stretch
    Aligned<Factor> surplus;      // (stretches, rows of a chunk, WORDS): P
    std::vector<float> scales;    // (R): s

    // Where P of a row of a chunk begins in the stretch of a word.
    Factor* surplus_at(Share chunk, int64_t row, int64_t word) {
        return surplus.data() + (word / WORDS * (chunk.end - chunk.begin) + row) * stride + word % WORDS;
    }

    // Losses, P and ∂X of a chunk of rows.
    void score(Share chunk) {
        const int64_t rows = chunk.end - chunk.begin, blocks = even_blocks(rows, HEIGHT, d.threads);
        parallel(blocks, d.threads, 1, [&](int64_t begin, int64_t end) {
            Aligned<float> logits(HEIGHT * WORDS);
            Aligned<Factor> taken(Tiles::padded_rows(HEIGHT) * taken_stride<Kind>(E));
            std::vector<Passing> passing(HEIGHT);
            for (int64_t number = begin; number < end; ++number) {
                const Share block(rows, number, blocks);
                const Matrix x{d.x + (chunk.begin + block.begin) * E, E, 1};
                take_rows<Kind>(x, block.end - block.begin, E, taken.data());
                pass(taken.data(), chunk, block, logits.data(), passing.data(), false);
                if (!finish(chunk, block, passing.data(), false)) {
                    pass(taken.data(), chunk, block, logits.data(), passing.data(), true);
                    finish(chunk, block, passing.data(), true);
                }
            }
        });
    }

    // Goes through the vocabulary with some rows: their sums and peaks, and P and P W where they are wanted.
    void pass(const Factor* taken, Share chunk, Share block, float* logits, Passing* passing, bool again) {
        const int64_t count = block.end - block.begin, top = chunk.begin + block.begin;
        for (int64_t first = 0; first < V; first += WORDS) {
            const int64_t words = std::min(WORDS, V - first), panel = first / Kind::COLUMNS;
            const Share panels(panel, std::min(panel + STRETCH, to_logits.panels()));
            Factor* surplus = d.d_x ? surplus_at(chunk, block.begin, first) : nullptr;
            product_in_panels<Kind>(taken, taken_stride<Kind>(E), count, to_logits, panels, logits - first, WORDS,
                                    {d.bias, 0});
            for (int64_t row = 0; row < count; ++row) {
                Passing& known = passing[row];
                float* z = logits + row * WORDS;
                if (first == 0) known.begin(again ? largest(known.peaks) : largest_of(z, words));
                const int64_t target = d.targets[top + row] - first;
                const bool wanted = target >= 0 && target < words;
                if (wanted) known.wanted = z[target];
                exponentiate(z, words, known, surplus ? surplus + row * stride : nullptr);
                if (wanted && surplus) surplus[row * stride + target] = 0;
            }
            if (!surplus) continue;
            float* d_x = d.d_x + top * E;
            const Packed& to_row = to_rows[first / WORDS];
            product_in_panels<Kind>(surplus, stride, count, to_row, Share(0, to_row.panels()), d_x, E,
                                    first > 0 ? Start{d_x, E} : ZERO);
        }
    }

    static float largest_of(const float* z, int64_t words) {
        Vector peaks = splat(-INFINITY);
        int64_t i = 0;
        for (; i + WIDTH <= words; i += WIDTH) peaks = maximum(peaks, load(z + i));
        float peak = largest(peaks);
        for (; i < words; ++i) peak = std::max(peak, z[i]);
        return peak;
    }

    // Exponentials of some words of one row; those beyond the last word, which a product takes together with it, are 0.
    static void exponentiate(float* z, int64_t words, Passing& known, Factor* to) {
        using Unit = typename Kind::FactorUnit;
        constexpr int64_t STEP = WIDTH * Unit::NUMBERS;
        const float reference = known.reference;
        Vector sums = known.sums, peaks = known.peaks;
        const auto units = [&](int64_t i, auto&& exponential_of) {
            Vector e[Unit::NUMBERS];
            for (int64_t j = 0; j < Unit::NUMBERS; ++j) sums += e[j] = exponential_of(i + j * WIDTH);
            if (to) store_units(to + i, Unit::of(e));
        };
        int64_t i = 0;
        for (; i + STEP <= words; i += STEP) {
            units(i, [&](int64_t i) {
                const Vector logits = load(z + i);
                peaks = maximum(peaks, logits);
                return exponential(logits - reference);
            });
        }
        for (; i < padded<Kind>(words); i += STEP) {
            units(i, [&](int64_t i) {
                Vector logits = splat(-INFINITY);
                std::memcpy(&logits, z + i, std::clamp<int64_t>(words - i, 0, WIDTH) * sizeof(float));
                peaks = maximum(peaks, logits);
                return exponential(logits - reference);
            });
        }
        known.sums = sums, known.peaks = peaks;
    }

    static Factor factor(float value) {
        using Unit = typename Kind::FactorUnit;
        Vector numbers[Unit::NUMBERS];
        std::fill(std::begin(numbers), std::end(numbers), splat(value));
        const Units unit = Unit::of(numbers);
        Factor first;
        std::memcpy(&first, &unit, sizeof first);
        return first;
    }

    // Losses of rows that have passed, and what P and P W lack of the target; false where a sum is too large and may be smaller.
    bool finish(Share chunk, Share block, const Passing* passing, bool certain) {
        for (int64_t row = block.begin; row < block.end; ++row) {
            const Passing& known = passing[row - block.begin];
            const int64_t at = chunk.begin + row, target = d.targets[at];
            const float total = sum(known.sums);
            if (!certain && !(total < LARGEST_SUM)) return false;
            d.losses[at] = std::log(total) + known.reference - known.wanted;
            if (!d.d_x) continue;
            const float lacking = exponential(splat(known.wanted - known.reference))[0] - total;
            const float scale = scales[at] = share / total, *weight = d.weight + target * E;
            float* d_x = d.d_x + at * E;
            *surplus_at(chunk, row, target) = factor(lacking);
            for (int64_t i = 0; i < E; ++i) d_x[i] = scale * (d_x[i] + lacking * weight[i]);
        }
        return true;
    }

    // ∂W += Pᵀ (s X) and ∂b += Pᵀ s of a chunk of rows.
    void add_weight_gradient(Share chunk) {
        const int64_t rows = chunk.end - chunk.begin, blocks = (V + HEIGHT - 1) / HEIGHT;
        const bool first = chunk.begin == 0;
        const float* scale = scales.data() + chunk.begin;
        Aligned<float> scaled(rows * E);
        for (int64_t row = 0; row < rows; ++row) {
            const float* x = d.x + (chunk.begin + row) * E;
            std::transform(x, x + E, scaled.data() + row * E, [&](float x) { return x * scale[row]; });
        }
        const Packed x({scaled.data(), E, 1}, rows, E, format, d.threads);
        parallel(blocks, d.threads, 1, [&](int64_t begin, int64_t end) {
            const int64_t taken_stride = prpn::taken_stride<Kind>(rows);
            Aligned<Factor> taken(Tiles::padded_rows(HEIGHT) * taken_stride);
            for (int64_t word = begin * HEIGHT; word < std::min(end * HEIGHT, V); word += HEIGHT) {
                const int64_t words = std::min(HEIGHT, V - word);
                float *d_weight = d.d_weight + word * E, *d_bias = d.d_bias + word;
                take_rows<Kind>(MatrixOf<Factor>{surplus_at(chunk, 0, word), 1, stride}, words, rows, taken.data());
                product_in_panels<Kind>(taken.data(), taken_stride, words, x, Share(0, x.panels()), d_weight, E,
                                        first ? ZERO : Start{d_weight, E});
                for (int64_t i = 0; i < words; ++i) {
                    const Factor* p = taken.data() + i * taken_stride;
                    d_bias[i] = (first ? 0 : d_bias[i]) + sum_over(rows, [&](int64_t row, int64_t n) {
                                    return widened(p + row, n) * load(scale + row, n);
                                });
                }
            }
        });
    }
};

}  // namespace

// Cross-entropies of the targets, and the gradient of their mean where there is room for it.
PRPN_API int32_t prpn_decoding(const float* x, const float* weight, const float* bias, const int64_t* targets,
                               int64_t rows, int64_t embedding, int64_t vocabulary, int64_t chunk, int32_t format,
                               float* losses, float* d_x, float* d_weight, float* d_bias, int64_t threads) {
    return guarded([&] {
        const Decoding d{rows, embedding, vocabulary, chunk, threads,  x,     weight,
                         bias, targets,   losses,     d_x,   d_weight, d_bias};
        check(d);
        check_kind("format", format, FORMATS);
        const Format used = available(Format(format));
        with_kind(used, [&](auto kind) { Decoder<decltype(kind)>(d, used).run(); });
    });
}
