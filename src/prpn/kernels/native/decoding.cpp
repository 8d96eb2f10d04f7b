// The decoder: cross-entropies of rows X (R, E) under the logits z = X Wᵀ + b of a vocabulary, and their gradient.
//
//     e_rv   = exp(z_rv − m_r),    n_r = Σ_v e_rv           loss_r = log n_r + m_r − z_{r,y_r}
//     P_rv   = e_rv − n_r [v = y_r]                         softmax − onehot is P / n
//     s_r    = 1 / (n_r R)          ∂X = s (P W)            ∂W = Pᵀ (s X)            ∂b = Pᵀ s
//
// W is packed once, by columns for z and by rows for ∂X. A thread takes a few rows at a time through the vocabulary, stretch
// by stretch: logits are exponentials before they leave the cache, and are never all there. P is left as they are, rounded as a
// product wants it; what they are to be divided by is known at the end of the row and goes to the other factor. Once P of a
// chunk of rows is there, the threads share the words of ∂W.
//
// Any m_r will do that keeps e within the range of floats: it is the largest logit of the first stretch, and only where another
// is so much larger that n_r or P might overflow, the row is gone through once more with the largest of all.
//
//     # R rows, V vocabulary, E embedding
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "api.h"
#include "normalise.h"
#include "product.h"
#include "vector.h"

using namespace prpn;

namespace {

// Logits that a thread goes through before it gives up their place: 2 MiB of P in bf16, but two blocks of rows at least, since all of
// W passes by, and a stretch of panels.
constexpr int64_t MOST_LOGITS = 1 << 20, STRETCH = 16;

// Sums of exponentials beyond which a row is gone through once more: what is left of the range is for X and W.
constexpr float LARGEST_SUM = 1e18f;

struct Decoding {
    int64_t rows, embedding, vocabulary, chunk, threads;
    const float *x, *weight, *bias;  // (R, E), (V, E), (V)
    const int64_t* targets;          // (R)
    float* losses;                   // (R)
    float *d_x, *d_weight, *d_bias;  // (R, E), (V, E), (V); none of them in evaluation
};

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
          stride(taken_stride<Kind>(V)),
          to_logits({d.weight, 1, E}, E, V, format, d.threads) {
        if (!d.d_x) return;
        scales.resize(d.rows);
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
    }

private:
    using Factor = typename Kind::Factor;
    static constexpr int64_t WORDS = STRETCH * Kind::COLUMNS;  // of a stretch
    const Decoding& d;
    const int64_t E, V;
    const Format format;
    const float share;     // 1 / R
    const int64_t stride;  // from one row of P to the next
    const Packed to_logits;
    std::optional<Packed> to_rows;
    Aligned<Factor> surplus;    // (rows of a chunk, V): P
    std::vector<float> scales;  // (R): s

    // Losses, P and ∂X of a chunk of rows.
    void score(Share chunk) {
        const int64_t rows = chunk.end - chunk.begin;
        const int64_t at_once = std::clamp<int64_t>(MOST_LOGITS / V / MOST_ROWS, 2, HEIGHT / MOST_ROWS) * MOST_ROWS;
        const int64_t blocks = even_blocks(rows, at_once, d.threads);
        parallel(blocks, d.threads, 1, [&](int64_t begin, int64_t end) {
            Aligned<float> logits(at_once * WORDS);
            Aligned<Factor> taken(Tiles::padded_rows(at_once) * taken_stride<Kind>(E));
            std::vector<Passing> passing(at_once);
            for (int64_t number = begin; number < end; ++number) {
                const Share block(rows, number, blocks);
                const Share places(chunk.begin + block.begin, chunk.begin + block.end);
                Factor* surplus = d.d_x ? this->surplus.data() + block.begin * stride : nullptr;
                take_rows<Kind>(Matrix{d.x + places.begin * E, E, 1}, places.end - places.begin, E, taken.data());
                pass(taken.data(), places, surplus, logits.data(), passing.data(), false);
                if (!finish(places, surplus, passing.data(), false)) {
                    pass(taken.data(), places, surplus, logits.data(), passing.data(), true);
                    finish(places, surplus, passing.data(), true);
                }
                if (d.d_x) find_row_gradient(places, surplus);
            }
        });
    }

    // Goes through the vocabulary with some rows: their sums and peaks, and the exponentials where they are wanted.
    void pass(const Factor* taken, Share places, Factor* surplus, float* logits, Passing* passing, bool again) {
        const int64_t count = places.end - places.begin;
        for (int64_t panel = 0; panel < to_logits.panels(); panel += STRETCH) {
            const Share panels(panel, std::min(panel + STRETCH, to_logits.panels()));
            const int64_t first = panel * Kind::COLUMNS, words = std::min(WORDS, V - first);
            product_in_panels<Kind>(taken, taken_stride<Kind>(E), count, to_logits, panels, logits - first, WORDS,
                                    {d.bias, 0});
            for (int64_t row = 0; row < count; ++row) {
                Passing& known = passing[row];
                float* z = logits + row * WORDS;
                if (first == 0) known.begin(again ? largest(known.peaks) : largest_of(z, words));
                const int64_t target = d.targets[places.begin + row] - first;
                if (target >= 0 && target < words) known.wanted = z[target];
                exponentiate(z, words, known, surplus ? surplus + row * stride + first : nullptr);
            }
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

    // Exponentials of some words of one row; those beyond the last word, which fill a unit up, are 0.
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
        for (; i < words; i += STEP) {
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

    // Losses of rows that have passed, and what P still lacks; false where a sum is too large and may be smaller.
    bool finish(Share places, Factor* surplus, const Passing* passing, bool certain) {
        for (int64_t row = 0; row < places.end - places.begin; ++row) {
            const Passing& known = passing[row];
            const float total = sum(known.sums);
            if (!certain && !(total < LARGEST_SUM)) return false;
            d.losses[places.begin + row] = std::log(total) + known.reference - known.wanted;
            if (!surplus) continue;
            const float e = exponential(splat(known.wanted - known.reference))[0];
            surplus[row * stride + d.targets[places.begin + row]] = factor(e - total);
            scales[places.begin + row] = share / total;
        }
        return true;
    }

    void find_row_gradient(Share places, const Factor* surplus) {
        float* d_x = d.d_x + places.begin * E;
        meet(surplus, places.end - places.begin, *to_rows, d_x, ZERO);
        for (int64_t row = places.begin; row < places.end; ++row, d_x += E) {
            std::for_each(d_x, d_x + E, [&](float& x) { x *= scales[row]; });
        }
    }

    // ∂W += Pᵀ (s X) and ∂b += Pᵀ s of a chunk of rows.
    void add_weight_gradient(Share chunk) {
        const int64_t rows = chunk.end - chunk.begin, blocks = (V + HEIGHT - 1) / HEIGHT;
        const float* scale = scales.data() + chunk.begin;
        Aligned<float> scaled(rows * E);
        for (int64_t row = 0; row < rows; ++row) {
            const float* x = d.x + (chunk.begin + row) * E;
            std::transform(x, x + E, scaled.data() + row * E, [&](float x) { return x * scale[row]; });
        }
        const Packed x({scaled.data(), E, 1}, rows, E, format, d.threads);
        parallel(blocks, d.threads, 1, [&](int64_t begin, int64_t end) {
            Aligned<Factor> taken(Tiles::padded_rows(HEIGHT) * taken_stride<Kind>(rows));
            for (int64_t number = begin; number < end; ++number) {
                const Share words(V, number, blocks);
                const MatrixOf<Factor> turned{surplus.data() + words.begin, 1, stride};
                take_rows<Kind>(turned, words.end - words.begin, rows, taken.data());
                meet(taken.data(), words.end - words.begin, x, d.d_weight + words.begin * E,
                     chunk.begin > 0 ? Start{d.d_weight + words.begin * E, E} : ZERO);
                for (int64_t word = words.begin; word < words.end; ++word) {
                    const Factor* p = taken.data() + (word - words.begin) * taken_stride<Kind>(rows);
                    const float before = chunk.begin > 0 ? d.d_bias[word] : 0;
                    d.d_bias[word] = before + sum_over(rows, [&](int64_t i, int64_t n) {
                                         return widened(p + i, n) * load(scale + i, n);
                                     });
                }
            }
        });
    }

    // C (rows, N) = start + A · W, the rows of A as `take_rows` leaves them. Tiles may also read rows that other threads write,
    // and use nothing of them.
    static void meet(const Factor* a, int64_t rows, const Packed& w, float* c, Start start) {
        const Share all(0, w.panels());
        product_in_panels<Kind>(a, taken_stride<Kind>(w.depth()), rows, w, all, c, w.columns(), start);
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
