// The reading recurrence of one layer over a whole chunk, forwards and backwards through time.
//
// Each thread takes some streams of the batch through all of time; for the two products of a step the threads meet and
// share the columns, so that each keeps its part of the weights in its cache.
//
// States lie on one tape [h; c] of N + T rows that never moves; step t reads the window tape[t : t + N].
//
//     k      = m_out (x_k + W_k (m_in h_{t−1}))                  a_n = h_n · k / √H
//     e_n    = exp(a_n − max a) / (Σ g exp(a − max a) + ε)       s_n = g_n e_n
//     [h̃; c̃] = Σ_n (m_s s)_n [h; c]_n                            without attention [h; c]_{t−1}
//     u      = γ LN(x_t) + β + γ' LN(W_h (m_r h̃) + b) + β'        x_t: W_i times the input
//     c_t    = σ(u_f) c̃ + σ(u_i) tanh(u_c)                       h_t = σ(u_o) tanh(γ" LN(c_t) + β")
//
// Backwards, what the N later steps want of state t is gathered instead of scattered, ∂a being the scores' gradient:
//
//     ∂[h; c]_t = [∂h_t; ∂c_t] + Σ_{j=1}^{N} ((m_s s)^{t+j}_{N−j} ∂[h̃; c̃]_{t+j} + ∂a^{t+j}_{N−j} [k_{t+j}; 0])
//                 + [m_in W_kᵀ ∂k_{t+1}; 0]
//
// Gates are not kept: backwards they are computed again from x_t and LN(W_h …), which are, and the gradients of those two
// take their places.
//
//     # T steps, B batch, N slots, H hidden; oldest slot first
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "attention.h"
#include "checks.h"
#include "normalise.h"
#include "product.h"
#include "random.h"
#include "threads.h"

// Mirrors kernels/native_recurrence.py, field by field. Masks that a rate of 0 switches off are not drawn.
struct Reading {
    int64_t steps, batch, slots, hidden, past_hidden_stride, past_cells_stride, key_stride, threads;
    int32_t released, bf16, attends, keeps_past_gradient;
    float* gate_inputs;                                                // (T, B, 4H): x
    const float *key_inputs, *gates;                                   // (T, B, H), (T, B, N)
    const float *past_hidden, *past_cells;                             // (N, B, H) by their strides
    const float *key_weight, *input_gain, *input_shift;                // (H, H) by key_stride, (4H), (4H)
    const float *hidden_weight, *hidden_bias;                          // (4H, H), (4H)
    const float *hidden_gain, *hidden_shift, *cell_gain, *cell_shift;  // (4H), (4H), (H), (H)
    const float* recurrent_mask;                                       // (H), or none
    uint64_t key_in_seed, key_out_seed, attention_seed;
    float key_rate, attention_rate;
    float* tape;                                                              // (N + T, B, 2H): [h; c]
    float *summaries, *keys;                                                  // (T, B, 2H): [h̃; c̃], (T, B, H)
    float *relative, *attention, *kept;                                       // (T, B, N): e, s, m_s s
    float* normed;                                                            // (T, B, 4H): LN(W_h (m_r h̃) + b)
    float *input_mean, *input_scale, *hidden_scale, *cell_mean, *cell_scale;  // (T, B)
    // Backward pass. ∂x replaces x and ∂(W_h h̃) the normed products.
    const float *d_hidden, *d_cells, *d_now;  // (N + T, B, H) twice, (T, B, H) of h alone; none where nothing is wanted
    float *d_past, *d_gates, *d_keys, *d_scores, *d_summaries;  // (N, B, 2H), …, (T, B, 2H)
    float *d_input_gain, *d_shift;                              // β and β' have the same gradient
    float *d_hidden_bias, *d_hidden_gain, *d_cell_gain, *d_cell_shift;
};

namespace prpn {

// What both passes read or write.
inline void check(const Reading* reading) {
    require(reading, "no arguments");
    const Reading& r = *reading;
    const int64_t T = r.steps, B = r.batch, N = r.slots, H = r.hidden, attending = r.attends ? T : 0;
    check_sizes({T, B, N, 4, H});
    check_sizes({4, H, H});
    check_sizes({N + T, B, 2, H});
    check_sizes({H, r.key_stride});
    require(N >= 1, "the recurrence looks back at one slot at least");
    check_rate(r.key_rate);
    check_rate(r.attention_rate);
    check_threads(r.threads);
    for (const float* array : {static_cast<const float*>(r.gate_inputs), static_cast<const float*>(r.normed)}) {
        check_array("gate_inputs or normed", array, {T, B, 4, H});
    }
    if (r.attends) check_array("key_weight", r.key_weight, {H, H});
    for (const float* array : {r.input_gain, r.input_shift, r.hidden_gain, r.hidden_shift}) {
        check_array("a norm of 4H", array, {4, H});
    }
    for (const float* array : {r.cell_gain, r.cell_shift}) check_array("cell_gain or cell_shift", array, {H});
    check_array("hidden_weight", r.hidden_weight, {4, H, H});
    check_array("tape", r.tape, {N + T, B, 2, H});
    check_array("summaries", r.summaries, {T, B, 2, H});
    check_array("keys", r.keys, {attending, B, H});
    for (const float* array : {r.relative, r.attention, r.kept}) {
        check_array("relative, attention or kept", array, {attending, B, N});
    }
    for (const float* array : {r.input_mean, r.input_scale, r.hidden_scale, r.cell_mean, r.cell_scale}) {
        check_array("a mean or a scale", array, {T, B});
    }
}

// What a thread needs for its streams, and the rows of arrays as its steps see them.
class Walk {
public:
    Walk(const Reading& r, const Member& member, Factors& key, Factors& hidden)
        : r(r),
          member(member),
          streams(r.batch, member.part, member.parts),
          begin(streams.begin),
          end(streams.end),
          H(r.hidden),
          N(r.slots),
          key_factors(key),
          hidden_factors(hidden),
          key_panels(key.weights().panels(), member.part, member.parts),
          hidden_panels(hidden.weights().panels(), member.part, member.parts),
          key_in(r.key_in_seed, r.key_rate),
          key_out(r.key_out_seed, r.key_rate),
          attention(N, H, 2 * H, Dropout(r.attention_seed, r.attention_rate)),
          row_scratch(H),
          shift(r.input_shift, r.input_shift + 4 * H) {
        std::transform(shift.begin(), shift.end(), r.hidden_shift, shift.begin(), std::plus<float>());
    }

protected:
    const Reading& r;
    const Member member;
    const Share streams;
    const int64_t begin, end, H, N;
    Factors &key_factors, &hidden_factors;  // of all streams: each thread takes the rows of its own
    const Share key_panels, hidden_panels;
    const Dropout key_in, key_out;
    Attention attention;
    Aligned<float> row_scratch, shift;  // (H), β + β' (4H)

    // The two normed parts of u at one place, and u. Pointers are copied: those of a struct that may be anywhere would be
    // read again after everything that is stored.
    class Update {
    public:
        Update(const Walk& walk, int64_t at)
            : row(4 * walk.H),
              x(walk.r.gate_inputs + at * row),
              normed(walk.r.normed + at * row),
              input_gain(walk.r.input_gain),
              hidden_gain(walk.r.hidden_gain),
              shift(walk.shift.data()),
              mean(walk.r.input_mean[at]),
              inverse(1.0f / walk.r.input_scale[at]) {}

        struct Part {
            Vector input, hidden, input_gain, hidden_gain, u;
        };

        Part operator()(int64_t i, int64_t n) const { return of(i, n, load(normed + i, n)); }

        Part of(int64_t i, int64_t n, Vector hidden) const {
            const Vector input = (load(x + i, n) - mean) * inverse;
            const Vector by_input = load(input_gain + i, n), by_hidden = load(hidden_gain + i, n);
            return {input, hidden, by_input, by_hidden, input * by_input + hidden * by_hidden + load(shift + i, n)};
        }

        // Into the cache with what the next stream's place has at i: first one part, later the other.
        void fetch_next_input(int64_t i) const { fetch(x, i); }
        void fetch_next_normed(int64_t i) const { fetch(normed, i); }

    private:
        const int64_t row;
        const float *const x, *const normed, *const input_gain, *const hidden_gain, *const shift;
        const float mean, inverse;

        void fetch(const float* from, int64_t i) const {
            for (int64_t gate = 0; gate < 4; ++gate) __builtin_prefetch(from + row + gate * row / 4 + i);
        }
    };

    int64_t place(int64_t t, int64_t b) const { return t * r.batch + b; }
    float* state(int64_t row, int64_t b) const { return r.tape + place(row, b) * 2 * H; }

    // C (B, N) = start + A (B, K) · W by all threads together, once all rows of A are there; then all of C is.
    void multiply(const Factors& factors, Share panels, float* c, int64_t c_stride, Start start) const {
        member.wait_for_all();
        factors.meet(r.batch, panels, c, c_stride, start);
        member.wait_for_all();
    }

    void take(Factors& factors, int64_t b, const float* row) const {
        factors.take(b, 1, {row, factors.weights().depth(), 1});
    }

    // to = from · mask for one row
    void masked(const Dropout& dropout, int64_t place, const float* from, float* to) const {
        if (!dropout.active()) {
            if (from != to) std::memcpy(to, from, H * sizeof(float));
            return;
        }
        const Dropout::Row row = dropout.row(place);
        each_vector(H, [&](int64_t i, int64_t n) { store(to + i, load(from + i, n) * row.factors(i), n); });
    }

    void recurrent_masked(const float* from, float* to) const {
        each_vector(H, [&](int64_t i, int64_t n) {
            store(to + i, r.recurrent_mask ? load(from + i, n) * load(r.recurrent_mask + i, n) : load(from + i, n), n);
        });
    }
};

}  // namespace prpn
