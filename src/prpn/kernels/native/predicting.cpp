// The predict network's attention: every place of a chunk over the N states before it, all places at once.
//
//     forward    summary_t = Σ_n (m s)^t_n h_{t−N+n}        joined_t = [h_t; summary_t]
//     backward   ∂h_t = Σ_{j=1}^{N} ((m s)^{t+j}_{N−j} ∂summary_{t+j} + ∂a^{t+j}_{N−j} k_{t+j}) + what joined_t wants of h_t,
//                gathered, row by row
//
//     # T steps, B batch, N slots, H hidden; rows of the tape lie `tape_stride` apart; oldest slot first
#include "api.h"
#include "attention.h"
#include "checks.h"
#include "threads.h"

using namespace prpn;

// Mirrors kernels/native_attention.py, field by field.
struct Predicting {
    int64_t steps, batch, slots, hidden, tape_stride, threads;
    const float *tape, *keys, *gates;  // (N + T, B, H) by tape_stride, (T, B, H), (T, B, N)
    uint64_t seed;
    float rate;
    float *relative, *attention, *kept, *joined;  // (T, B, N) three times, (T, B, 2H)
    const float* d_joined;                        // (T, B, 2H)
    float *d_gates, *d_scores, *d_keys, *d_tape;  // (T, B, N) twice, (T, B, H), (N + T, B, H)
};

namespace {

// The rows that a place attends to: place (t, b) is row t · B + b, and slot n of it the tape's row (t + n, b).
auto window_of(const Predicting& p, int64_t at) {
    return [&p, at](int64_t n) { return p.tape + (at + n * p.batch) * p.tape_stride; };
}

void check(const Predicting* predicting) {
    require(predicting, "no arguments");
    const Predicting& p = *predicting;
    const int64_t T = p.steps, B = p.batch, N = p.slots, H = p.hidden;
    check_sizes({T, B, N, 2, H});
    check_sizes({B, N + T, p.tape_stride});
    require(N >= 1, "attention has slots");
    check_rate(p.rate);
    check_threads(p.threads);
    check_array("tape", p.tape, {N + T, B, H});
    check_array("keys", p.keys, {T, B, H});
    for (const float* array : {p.relative, p.attention, p.kept}) {
        check_array("relative, attention or kept", array, {T, B, N});
    }
}

}  // namespace

PRPN_API int32_t prpn_predicting_forward(const Predicting* predicting) {
    return guarded([&] {
        check(predicting);
        const Predicting& p = *predicting;
        const int64_t N = p.slots, H = p.hidden;
        check_array("gates", p.gates, {p.steps, p.batch, N});
        check_array("joined", p.joined, {p.steps, p.batch, 2, H});
        parallel(p.steps * p.batch, p.threads, 1, [&](int64_t begin, int64_t end) {
            Attention attention(N, H, H, Dropout(p.seed, p.rate));
            for (int64_t at = begin; at < end; ++at) {
                float* joined = p.joined + at * 2 * H;
                std::memcpy(joined, window_of(p, at)(N), H * sizeof(float));
                attention.forward(at, p.keys + at * H, p.gates + at * N, window_of(p, at), p.relative + at * N,
                                  p.attention + at * N, p.kept + at * N, joined + H);
            }
        });
    });
}

PRPN_API int32_t prpn_predicting_backward(const Predicting* predicting) {
    return guarded([&] {
        check(predicting);
        const Predicting& p = *predicting;
        const int64_t N = p.slots, H = p.hidden;
        check_array("d_joined", p.d_joined, {p.steps, p.batch, 2, H});
        for (const float* array : {p.d_gates, p.d_scores}) {
            check_array("d_gates or d_scores", array, {p.steps, p.batch, N});
        }
        check_array("d_keys", p.d_keys, {p.steps, p.batch, H});
        check_array("d_tape", p.d_tape, {N + p.steps, p.batch, H});
        parallel(p.steps * p.batch, p.threads, 1, [&](int64_t begin, int64_t end) {
            Attention attention(N, H, H, Dropout(p.seed, p.rate));
            for (int64_t at = begin; at < end; ++at) {
                attention.backward(at, p.d_joined + at * 2 * H + H, window_of(p, at), p.relative + at * N,
                                   p.attention + at * N, p.d_gates + at * N, p.d_scores + at * N, p.d_keys + at * H);
            }
        });
        parallel((N + p.steps) * p.batch, p.threads, 1, [&](int64_t begin, int64_t end) {
            std::vector<Term> terms, key_terms;
            for (int64_t row = begin; row < end; ++row) {
                const int64_t t = row / p.batch - N, b = row % p.batch;  // the tape's first N rows are the past
                terms.clear();
                key_terms.clear();
                gather_terms(
                    N, std::max<int64_t>(1, -t), std::min(N, p.steps - 1 - t),
                    [&](int64_t j) { return (t + j) * p.batch + b; }, p.kept, p.d_scores, p.d_joined + H, 2 * H, p.keys,
                    H, terms, key_terms);
                if (t >= 0) terms.push_back({1.0f, p.d_joined + (t * p.batch + b) * 2 * H});
                weighted_sum(terms, H, p.d_tape + row * H, false);
                weighted_sum(key_terms, H, p.d_tape + row * H, true);
            }
        });
    });
}

PRPN_API int32_t prpn_predicting_layout(int64_t* size, int64_t* last) {
    return layout_of<Predicting>(size, last, offsetof(Predicting, d_tape));
}
