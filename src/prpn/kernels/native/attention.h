// Structured attention of one place over its window of N states, and its backward pass.
//
//     a_n = h_n · k / √H                 e_n = exp(a_n − max a) / (Σ g exp(a − max a) + ε)
//     s_n = g_n e_n                      summary = Σ_n (m s)_n [h; …]_n
//
// Backwards closed slots are passed over: ∂g_n is 0 where s_n is. It would reach nothing, for the factor that closed the
// gate stands at its bound, and all others are multiplied by that one.
//
// A window's rows may be wider than the key: the scores read their first H numbers, the summary all of them.
//
//     # N slots, H hidden; oldest slot first
#pragma once

#include <cmath>
#include <type_traits>
#include <vector>

#include "normalise.h"
#include "random.h"

namespace prpn {

constexpr float ATTENTION_EPSILON = 1e-8f;

// out[n] = rows_n · vector, four rows at once so that their sums do not wait for each other.
template <class RowOf>
void dots(int64_t count, int64_t size, const float* vector, const RowOf& row_of, float* out) {
    for (int64_t first = 0; first < count; first += 4) {
        const float* rows[4];
        const int64_t some = std::min<int64_t>(4, count - first);
        for (int64_t j = 0; j < 4; ++j) rows[j] = row_of(first + std::min(j, some - 1));
        Vector sums[4] = {};
        each_vector(size, [&](int64_t i, int64_t n) {
            const Vector factor = load(vector + i, n);
            for (int64_t j = 0; j < 4; ++j) sums[j] += factor * load(rows[j] + i, n);
        });
        for (int64_t j = 0; j < some; ++j) out[first + j] = sum(sums[j]);
    }
}

// One summand of a weighted sum of rows.
struct Term {
    float weight;
    const float* row;
};

// to[i] (+)= Σ weight · row[i], some vectors of each row at once so that their sums do not wait for each other. Lines are not
// fetched ahead: the processor does it better by itself (docs/log.md).
inline void weighted_sum(const std::vector<Term>& terms, int64_t size, float* to, bool add) {
    int64_t i = 0;
    const auto by = [&](auto vectors) {
        constexpr int64_t COUNT = decltype(vectors)::value;
        for (; i + COUNT * WIDTH <= size; i += COUNT * WIDTH) {
            Vector sums[COUNT] = {};
            for (int64_t j = 0; add && j < COUNT; ++j) sums[j] = load(to + i + j * WIDTH);
            for (const Term& term : terms) {
#pragma GCC unroll 8
                for (int64_t j = 0; j < COUNT; ++j) sums[j] += term.weight * load(term.row + i + j * WIDTH);
            }
            for (int64_t j = 0; j < COUNT; ++j) store(to + i + j * WIDTH, sums[j]);
        }
    };
    by(std::integral_constant<int64_t, 8>());
    by(std::integral_constant<int64_t, 1>());
    if (i == size) return;
    Vector rest = add ? load(to + i, size - i) : Vector{};
    for (const Term& term : terms) rest += term.weight * load(term.row + i, size - i);
    store(to + i, rest, size - i);
}

// Attends again and again with the same scratch.
class Attention {
public:
    Attention(int64_t slots, int64_t hidden, int64_t width, const Dropout& dropout)
        : N(slots), H(hidden), width(width), dropout(dropout), scores(slots + WIDTH), found(slots) {}

    // Arrays of one place: gates, e, s, m s (N each) and the summary (width).
    template <class RowOf>
    void forward(int64_t place, const float* key, const float* gates, const RowOf& row_of, float* relative,
                 float* attention, float* kept, float* summary) {
        dots(N, H, key, row_of, scores.data());
        const float scale = 1.0f / std::sqrt(float(H));
        float peak = -INFINITY;
        for (int64_t n = 0; n < N; ++n) peak = std::max(peak, scores[n] *= scale);
        Vector open{};
        each_vector(N, [&](int64_t n, int64_t count) {
            const Vector exponentials = exponential(load(scores.data() + n, count) - peak);
            store(scores.data() + n, exponentials);
            open += exponentials * load(gates + n, count);
        });
        const float inverse = 1.0f / (sum(open) + ATTENTION_EPSILON);
        const Dropout::Row mask = dropout.row(place);
        each_vector(N, [&](int64_t n, int64_t count) {
            const Vector e = load(scores.data() + n, count) * inverse, s = e * load(gates + n, count);
            store(relative + n, e, count);
            store(attention + n, s, count);
            store(kept + n, dropout.active() ? s * mask.factors(n) : s, count);
        });
        terms.clear();
        for (int64_t n = 0; n < N; ++n) {
            if (kept[n] != 0) terms.push_back({kept[n], row_of(n)});
        }
        weighted_sum(terms, width, summary, false);
    }

    // From the gradient of the summary to those of gates (N), scores before their scaling by √H (N) and key (H).
    template <class RowOf>
    void backward(int64_t place, const float* d_summary, const RowOf& row_of, const float* relative,
                  const float* attention, float* d_gates, float* d_scores, float* d_key) {
        float* d = scores.data();
        open.clear();
        for (int64_t n = 0; n < N; ++n) {
            if (attention[n] != 0) open.push_back(n);
        }
        dots(int64_t(open.size()), width, d_summary, [&](int64_t i) { return row_of(open[i]); }, found.data());
        std::fill(scores.begin(), scores.end(), 0.0f);
        for (size_t i = 0; i < open.size(); ++i) d[open[i]] = found[i];
        if (dropout.active()) {
            const Dropout::Row mask = dropout.row(place);
            each_vector(N, [&](int64_t n, int64_t count) { store(d + n, load(d + n, count) * mask.factors(n)); });
        }
        float projection = 0, total = 0;
        for (int64_t n = 0; n < N; ++n) projection += d[n] * attention[n];
        int64_t strongest = 0;
        for (int64_t n = 0; n < N; ++n) {
            d_gates[n] = attention[n] != 0 ? relative[n] * (d[n] - projection) : 0;
            d_scores[n] = attention[n] * (d[n] - projection);
            total += d_scores[n];
            if (relative[n] > relative[strongest]) strongest = n;
        }
        d_scores[strongest] -= total;  // through the maximum
        const float scale = 1.0f / std::sqrt(float(H));
        terms.clear();
        for (int64_t n = 0; n < N; ++n) {
            d_scores[n] *= scale;
            if (d_scores[n] != 0) terms.push_back({d_scores[n], row_of(n)});
        }
        weighted_sum(terms, H, d_key, false);
    }

private:
    const int64_t N, H, width;
    const Dropout dropout;
    std::vector<float> scores, found;
    std::vector<int64_t> open;
    std::vector<Term> terms;
};

// What the N places that look back at a state want of it: terms of ∂summary and of the key, for `weighted_sum`.
// `place_of(j)` is the place j steps after the state, for j = first … last.
template <class PlaceOf>
void gather_terms(int64_t slots, int64_t first, int64_t last, const PlaceOf& place_of, const float* kept,
                  const float* d_scores, const float* d_summaries, int64_t width, const float* keys, int64_t hidden,
                  std::vector<Term>& terms, std::vector<Term>& key_terms) {
    for (int64_t j = first; j <= last; ++j) {
        const int64_t later = place_of(j), slot = later * slots + slots - j;
        if (kept[slot] != 0) terms.push_back({kept[slot], d_summaries + later * width});
        if (d_scores[slot] != 0) key_terms.push_back({d_scores[slot], keys + later * hidden});
    }
}

}  // namespace prpn
