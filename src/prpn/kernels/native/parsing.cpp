// Distances before their activation, from rows that are worked out once for each word:
//
//     row[x][k]  =  V_k e_x                                        k = 0 … L + R
//     d_t        =  w · ReLU(v + Σ_k row[x_{t−L+k}][k]) + b
//
// A sentence is read after `silence` … `silence`, `start`, and before `silence` …. Sums run over k in order, as in
// folded.py.

#include <vector>

#include "api.h"
#include "checks.h"
#include "vector.h"
#include "workers.h"

namespace prpn {
namespace {

// `WORDS` rows, some vectors of columns of each: a number is a sum in the same order, whatever is worked out with it.
template <int WORDS, int VECTORS>
inline void multiply(const float* const* embeddings, const float* kernel, int64_t size, int64_t columns,
                     float* const* rows) {
    Vector sums[WORDS][VECTORS] = {};
    for (int64_t e = 0; e < size; ++e) {
        for (int v = 0; v < VECTORS; ++v) {
            const Vector weights = load(kernel + e * columns + v * WIDTH);
            for (int w = 0; w < WORDS; ++w) sums[w][v] += embeddings[w][e] * weights;
        }
    }
    for (int w = 0; w < WORDS; ++w) {
        for (int v = 0; v < VECTORS; ++v) store(rows[w] + v * WIDTH, sums[w][v]);
    }
}

struct Network {
    const float* bias;  // (C)
    const float* head;  // (C)
    float head_bias;
    int64_t channels, windows;  // C, a multiple of WIDTH, and L + 1 + R
};

// The share of channels c … c + VECTORS · WIDTH − 1 in the product with the head, while the same channels of the rows
// that the next place will need are fetched: each is used once, so no cache has them ready.
template <int VECTORS>
inline void add_channels(const Network& network, const float* const* rows, const float* const* next, int64_t c,
                         Vector* products) {
    Vector hidden[VECTORS];
    for (int i = 0; i < VECTORS; ++i) hidden[i] = load(network.bias + c + i * WIDTH);
    for (int64_t k = 0; k < network.windows; ++k) {
        const float* row = rows[k] + k * network.channels + c;
        for (int i = 0; i < VECTORS; ++i) {
            __builtin_prefetch(next[k] + k * network.channels + c + i * WIDTH);
            hidden[i] += load(row + i * WIDTH);
        }
    }
    // In this order a hidden unit that is not a number stays so.
    for (int i = 0; i < VECTORS; ++i) products[i] += maximum(Vector{}, hidden[i]) * load(network.head + c + i * WIDTH);
}

float score(const Network& network, const float* const* rows, const float* const* next) {
    constexpr int BLOCK = 4;
    const int64_t channels = network.channels;
    Vector products[BLOCK] = {};
    int64_t c = 0;
    for (; c + BLOCK * WIDTH <= channels; c += BLOCK * WIDTH) add_channels<BLOCK>(network, rows, next, c, products);
    for (; c < channels; c += WIDTH) add_channels<1>(network, rows, next, c, products);
    return sum((products[0] + products[1]) + (products[2] + products[3])) + network.head_bias;
}

// Words that a thread takes at once when it scores them: for fewer it is not worth making one.
constexpr int64_t PIECE = 1024;

// Whose scores are wanted, and what is known of the words around them.
struct Words {
    const int32_t* slots;
    int64_t first, slots_count;
    const int64_t* ends;
    int64_t sentences, from, to;

    // All that is looked at lies within the slots and the sentences.
    void check(int64_t windows, int64_t lookahead, int64_t table_rows) const {
        check_array("slots", slots, {slots_count});
        check_array("ends", ends, {sentences});
        check_sizes({first});
        check_sizes({from});
        check_sizes({to});
        require(from <= to, "the words end before they begin");
        int64_t before = 0;
        for (int64_t i = 0; i < sentences; before = ends[i++]) {
            require(ends[i] >= before, "a sentence ends before it begins");
        }
        if (from == to) return;
        require(before >= to, "there are words after the last sentence");
        check_indices("slot", slots, slots_count, table_rows);
        const int64_t* end = std::upper_bound(ends, ends + sentences, from);
        const int64_t earliest = std::max(end == ends ? 0 : end[-1], from - windows + 1 + lookahead);
        const int64_t latest = std::min(*std::upper_bound(ends, ends + sentences, to - 1) - 1, to - 1 + lookahead);
        require(earliest >= first && latest < first + slots_count, "there are words without a slot");
    }
};

}  // namespace
}  // namespace prpn

// Columns and channels are multiples of WIDTH: those that are missing are 0.
//
// rows (n, columns) = embedding (V, E) at some ids (n) times kernel (E, columns)
PRPN_API int32_t prpn_parsing_rows(const float* embedding, int64_t vocabulary, const float* kernel, int64_t size,
                                   int64_t columns, const int32_t* ids, int64_t n, float* rows, int64_t threads) {
    using namespace prpn;
    return guarded([&] {
        check_array("embedding", embedding, {vocabulary, size});
        check_array("kernel", kernel, {size, columns});
        check_array("ids", ids, {n});
        check_array("rows", rows, {n, columns});
        require(columns % WIDTH == 0, "the columns do not fill vectors");
        check_indices("word", ids, n, vocabulary);
        check_threads(threads);
        constexpr int64_t WORDS = 6, VECTORS = 4, MANY = 4 * WORDS;
        share_out((n + MANY - 1) / MANY, threads, [&](int64_t piece) {
            const int64_t from = piece * MANY, to = std::min(n, from + MANY);
            for (int64_t c = 0; c < columns; c += VECTORS * WIDTH) {
                for (int64_t i = from; i < to; i += WORDS) {
                    const float* embeddings[WORDS];
                    float* results[WORDS];
                    for (int64_t w = 0; w < WORDS; ++w) {
                        const int64_t word =
                            std::min(i + w, to - 1);  // the last one stands in for those that are not there
                        embeddings[w] = embedding + ids[word] * size;
                        results[w] = rows + word * columns + c;
                    }
                    if (c + VECTORS * WIDTH <= columns) {
                        multiply<WORDS, VECTORS>(embeddings, kernel + c, size, columns, results);
                    } else {
                        for (int64_t v = c; v < columns; v += WIDTH) {
                            multiply<WORDS, 1>(embeddings, kernel + v, size, columns, results);
                            for (float*& result : results) result += WIDTH;
                        }
                    }
                }
            }
        });
    });
}

// Scores of the words `from` … `to` − 1 of some sentences that stand one after the other and end at `ends` (S).
// rows (table_rows, L + 1 + R, C); slots: which row each word has, beginning with word `first`, the earliest that any
// looks back on, up to the last that any looks ahead to.
PRPN_API int32_t prpn_parsing_scores(const float* rows, int64_t table_rows, const float* bias, const float* head,
                                     float head_bias, int64_t channels, int64_t windows, int64_t lookahead,
                                     int32_t silence, int32_t start, const int32_t* slots, int64_t slots_count,
                                     int64_t first, const int64_t* ends, int64_t sentences, int64_t from, int64_t to,
                                     float* scores, int64_t threads) {
    using namespace prpn;
    return guarded([&] {
        check_array("rows", rows, {table_rows, windows, channels});
        check_array("bias", bias, {channels});
        check_array("head", head, {channels});
        require(channels % WIDTH == 0, "the channels do not fill vectors");
        check_sizes({lookahead});
        require(lookahead < windows, "all windows look ahead");
        for (const int32_t special : {silence, start}) check_indices("slot", &special, 1, table_rows);
        const Words words{slots, first, slots_count, ends, sentences, from, to};
        words.check(windows, lookahead, table_rows);
        check_array("scores", scores, {to - from});
        check_threads(threads);
        const Network network{bias, head, head_bias, channels, windows};
        const auto row = [&](int32_t slot) { return rows + slot * windows * channels; };
        share_out((to - from + PIECE - 1) / PIECE, threads, [&](int64_t piece) {
            const int64_t own_from = piece * PIECE, own_to = std::min(to - from, own_from + PIECE);
            const int64_t* end = std::upper_bound(ends, ends + sentences, from + own_from);
            int64_t begin = end == ends ? 0 : end[-1];
            std::vector<const float*> window(windows), next(windows);
            const auto look_around = [&](int64_t t) {  // within [begin, *end), the sentence of t
                for (int64_t k = 0; k < windows; ++k) {
                    const int64_t place = t - windows + 1 + lookahead + k;
                    const bool inside = place >= begin && place < *end;
                    next[k] = row(inside ? slots[place - first] : place == begin - 1 ? start : silence);
                }
            };
            look_around(from + own_from);
            for (int64_t i = own_from; i < own_to; ++i) {
                window = next;
                if (i + 1 < own_to) {
                    while (*end <= from + i + 1) begin = *end++;
                    look_around(from + i + 1);
                }
                scores[i] = score(network, window.data(), next.data());
            }
        });
    });
}
