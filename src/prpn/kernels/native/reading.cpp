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
//     ∂[h; c]_t = ∂tape_t + Σ_{j=1}^{N} ((m_s s)^{t+j}_{N−j} ∂[h̃; c̃]_{t+j} + ∂a^{t+j}_{N−j} [k_{t+j}; 0])
//                 + [m_in W_kᵀ ∂k_{t+1}; 0]
//
// Gates are not kept: backwards they are computed again from x_t and LN(W_h …), which are, and the gradients of those two
// take their places.
//
//     # T steps, B batch, N slots, H hidden; oldest slot first
#include <map>
#include <mutex>
#include <vector>

#include "api.h"
#include "attention.h"
#include "normalise.h"
#include "product.h"
#include "random.h"
#include "threads.h"

using namespace prpn;

// Mirrors kernels/native_recurrence.py, field by field. Masks that a rate of 0 switches off are not drawn.
struct Reading {
    int64_t steps, batch, slots, hidden, key_stride, threads;
    int32_t released, bf16, attends, keeps_past_gradient;
    float* gate_inputs;                                                // (T, B, 4H): x
    const float *key_inputs, *gates;                                   // (T, B, H), (T, B, N)
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
    const float* d_tape;                                        // (N + T, B, 2H)
    float *d_past, *d_gates, *d_keys, *d_scores, *d_summaries;  // (N, B, 2H), …, (T, B, 2H)
    float *d_input_gain, *d_shift;                              // β and β' have the same gradient
    float *d_hidden_bias, *d_hidden_gain, *d_cell_gain, *d_cell_shift;
};

namespace {

// What a thread needs for its streams, and the rows of arrays as its steps see them.
class Walk {
public:
    Walk(const Reading& r, int64_t part, int64_t parts, const Packed& key, const Packed& hidden, float* buffer)
        : r(r),
          streams(r.batch, part, parts),
          begin(streams.begin),
          end(streams.end),
          H(r.hidden),
          N(r.slots),
          key_weight(key),
          hidden_weight(hidden),
          key_panels(key.panels(), part, parts),
          hidden_panels(hidden.panels(), part, parts),
          buffer(buffer),
          key_in(r.key_in_seed, r.key_rate),
          key_out(r.key_out_seed, r.key_rate),
          attention(N, H, 2 * H, Dropout(r.attention_seed, r.attention_rate)),
          row_scratch(4 * H) {}

protected:
    const Reading& r;
    const Share streams;
    const int64_t begin, end, H, N;
    const Packed &key_weight, &hidden_weight;
    const Share key_panels, hidden_panels;
    float* const buffer;  // (B, H), shared by all threads
    const Dropout key_in, key_out;
    Attention attention;
    std::vector<float> row_scratch;
    ProductScratch scratch;

    // The gates of one place, from the two parts of u.
    class Update {
    public:
        Update(const Walk& walk, int64_t at)
            : r(walk.r),
              H(walk.H),
              x(r.gate_inputs + at * 4 * H),
              normed(r.normed + at * 4 * H),
              mean(r.input_mean[at]),
              inverse(1.0f / r.input_scale[at]) {}

        Vector write(int64_t i, int64_t n) const { return sigmoid(at(i, n)); }
        Vector keep(int64_t i, int64_t n) const { return sigmoid(at(H + i, n)); }
        Vector candidate(int64_t i, int64_t n) const { return hyperbolic_tangent(at(2 * H + i, n)); }
        Vector show(int64_t i, int64_t n) const { return sigmoid(at(3 * H + i, n)); }
        Vector input_normed(int64_t i, int64_t n) const { return (load(x + i, n) - mean) * inverse; }
        Vector hidden_normed(int64_t i, int64_t n) const { return load(normed + i, n); }

    private:
        const Reading& r;
        const int64_t H;
        const float *x, *normed;
        const float mean, inverse;

        Vector at(int64_t i, int64_t n) const {
            return input_normed(i, n) * load(r.input_gain + i, n) + load(r.input_shift + i, n) +
                   hidden_normed(i, n) * load(r.hidden_gain + i, n) + load(r.hidden_shift + i, n);
        }
    };

    int64_t place(int64_t t, int64_t b) const { return t * r.batch + b; }
    float* state(int64_t row, int64_t b) const { return r.tape + place(row, b) * 2 * H; }

    // C (B, N) += A (B, K) · W by all threads together, once all rows of A and C are there
    void multiply(const float* a, int64_t a_stride, const Packed& w, Share panels, float* c, int64_t c_stride) {
        wait_for_all();
        product(a, a_stride, r.batch, w, panels, c, c_stride, scratch);
        wait_for_all();
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

class Forward : Walk {
public:
    using Walk::Walk;

    void run() {
        for (int64_t t = 0; t < r.steps; ++t) {
            if (r.attends) make_keys(t);
            for (int64_t b = begin; b < end; ++b) {
                if (r.attends) attend(t, b);
                else std::memcpy(r.summaries + place(t, b) * 2 * H, state(N + t - 1, b), 2 * H * sizeof(float));
            }
            for (int64_t b = begin; b < end; ++b) {
                recurrent_masked(r.summaries + place(t, b) * 2 * H, buffer + b * H);
                std::memcpy(r.normed + place(t, b) * 4 * H, r.hidden_bias, 4 * H * sizeof(float));
            }
            multiply(buffer, H, hidden_weight, hidden_panels, r.normed + place(t, 0) * 4 * H, 4 * H);
            for (int64_t b = begin; b < end; ++b) update(t, b);
        }
    }

private:
    void make_keys(int64_t t) {
        const int64_t first = place(t, begin) * H;
        std::memcpy(r.keys + first, r.key_inputs + first, (end - begin) * H * sizeof(float));
        for (int64_t b = begin; b < end; ++b) masked(key_in, place(t, b), state(N + t - 1, b), buffer + b * H);
        multiply(buffer, H, key_weight, key_panels, r.keys + place(t, 0) * H, H);
        for (int64_t b = begin; b < end; ++b) {
            float* key = r.keys + place(t, b) * H;
            masked(key_out, place(t, b), key, key);
        }
    }

    void attend(int64_t t, int64_t b) {
        const int64_t at = place(t, b);
        attention.forward(
            at, r.keys + at * H, r.gates + at * N, [&](int64_t n) { return state(t + n, b); }, r.relative + at * N,
            r.attention + at * N, r.kept + at * N, r.summaries + at * 2 * H);
    }

    void update(int64_t t, int64_t b) {
        const int64_t at = place(t, b);
        float *normed = r.normed + at * 4 * H, *now = state(N + t, b), *cell = now + H, *shown = row_scratch.data();
        const float* cell_summary = r.summaries + at * 2 * H + H;
        const Spread input_spread = spread_of(r.gate_inputs + at * 4 * H, 4 * H, r.released);
        r.input_mean[at] = input_spread.mean;
        r.input_scale[at] = input_spread.scale;
        const Spread spread = spread_of(normed, 4 * H, r.released);
        r.hidden_scale[at] = spread.scale;
        const float inverse = 1.0f / spread.scale;
        each_vector(4 * H,
                    [&](int64_t i, int64_t n) { store(normed + i, (load(normed + i, n) - spread.mean) * inverse, n); });
        const Update u(*this, at);
        each_vector(H, [&](int64_t i, int64_t n) {
            store(cell + i, u.keep(i, n) * load(cell_summary + i, n) + u.write(i, n) * u.candidate(i, n), n);
            store(shown + i, u.show(i, n), n);
        });
        const Spread cell_spread = spread_of(cell, H, r.released);
        r.cell_mean[at] = cell_spread.mean;
        r.cell_scale[at] = cell_spread.scale;
        const float cell_inverse = 1.0f / cell_spread.scale;
        each_vector(H, [&](int64_t i, int64_t n) {
            const Vector y = (load(cell + i, n) - cell_spread.mean) * cell_inverse;
            const Vector seen = hyperbolic_tangent(y * load(r.cell_gain + i, n) + load(r.cell_shift + i, n));
            store(now + i, load(shown + i, n) * seen, n);
        });
    }
};

// Gradients that all rows add to.
struct Sums {
    explicit Sums(int64_t hidden)
        : input_gain(4 * hidden),
          shift(4 * hidden),
          hidden_bias(4 * hidden),
          hidden_gain(4 * hidden),
          cell_gain(hidden),
          cell_shift(hidden) {}

    std::vector<float> input_gain, shift, hidden_bias, hidden_gain, cell_gain, cell_shift;
};

inline void add_to(std::vector<float>& sums, int64_t i, Vector terms, int64_t n) {
    store(sums.data() + i, load(sums.data() + i, n) + terms, n);
}

class Backward : Walk {
public:
    // buffer and carried are (B, H) and shared by all threads; carried is m_in W_kᵀ ∂k_{t+1}.
    Backward(const Reading& r, int64_t part, int64_t parts, const Packed& key, const Packed& hidden, float* buffer,
             float* carried)
        : Walk(r, part, parts, key, hidden, buffer),
          sums(H),
          carried(carried),
          d_state(2 * H),
          d_shown(H),
          cell_normed(H),
          d_update(4 * H) {}

    void run() {
        for (int64_t t = r.steps - 1; t >= 0; --t) {
            for (int64_t b = begin; b < end; ++b) {
                gather(t, b);
                update(t, b);
                std::memset(buffer + b * H, 0, H * sizeof(float));
            }
            multiply(r.normed + place(t, 0) * 4 * H, 4 * H, hidden_weight, hidden_panels, buffer, H);
            for (int64_t b = begin; b < end; ++b) {
                recurrent_masked(buffer + b * H, r.d_summaries + place(t, b) * 2 * H);
                if (r.attends) attend(t, b);
            }
            if (r.attends) make_keys(t);
        }
        if (!r.keeps_past_gradient) return;
        for (int64_t t = -1; t >= -N; --t) {
            for (int64_t b = begin; b < end; ++b) {
                gather(t, b);
                std::memcpy(r.d_past + place(N + t, b) * 2 * H, d_state.data(), 2 * H * sizeof(float));
            }
        }
    }

    Sums sums;

private:
    float* const carried;
    std::vector<float> d_state, d_shown, cell_normed, d_update;
    std::vector<Term> terms, key_terms;

    // ∂[h; c]_t into d_state; t < 0 is the past.
    void gather(int64_t t, int64_t b) {
        std::memcpy(d_state.data(), r.d_tape + place(N + t, b) * 2 * H, 2 * H * sizeof(float));
        terms.clear();
        key_terms.clear();
        if (!r.attends) {
            if (t >= -1 && t + 1 < r.steps) terms.push_back({1.0f, r.d_summaries + place(t + 1, b) * 2 * H});
        } else {
            gather_terms(
                N, std::max<int64_t>(1, -t), std::min(N, r.steps - 1 - t), [&](int64_t j) { return place(t + j, b); },
                r.kept, r.d_scores, r.d_summaries, 2 * H, r.keys, H, terms, key_terms);
            if (t >= -1 && t + 1 < r.steps) key_terms.push_back({1.0f, carried + b * H});
        }
        weighted_sum(terms, 2 * H, d_state.data(), true);
        weighted_sum(key_terms, H, d_state.data(), true);
    }

    void update(int64_t t, int64_t b) {
        const int64_t at = place(t, b);
        const float *d_hidden = d_state.data(), *cell = state(N + t, b) + H;
        const float* cell_summary = r.summaries + at * 2 * H + H;
        float *d_u = d_update.data(), *d_cell = d_state.data() + H, *d_cell_summary = r.d_summaries + at * 2 * H + H;
        const float mean = r.cell_mean[at], inverse = 1.0f / r.cell_scale[at];
        const Update u(*this, at);
        each_vector(H, [&](int64_t i, int64_t n) {
            const Vector y = (load(cell + i, n) - mean) * inverse, gain = load(r.cell_gain + i, n);
            const Vector shown = hyperbolic_tangent(y * gain + load(r.cell_shift + i, n));
            const Vector show = u.show(i, n), d = load(d_hidden + i, n);
            const Vector d_inner = d * show * (1.0f - shown * shown);
            store(d_u + 3 * H + i, d * shown * show * (1.0f - show), n);
            store(cell_normed.data() + i, y, n);
            add_to(sums.cell_gain, i, d_inner * y, n);
            add_to(sums.cell_shift, i, d_inner, n);
            store(d_shown.data() + i, d_inner * gain, n);
        });
        normalise_backward(d_shown.data(), H, r.cell_scale[at], r.released,
                           [&](int64_t i, int64_t n) { return load(cell_normed.data() + i, n); });
        each_vector(H, [&](int64_t i, int64_t n) {
            const Vector d = load(d_cell + i, n) + load(d_shown.data() + i, n);
            const Vector write = u.write(i, n), keep = u.keep(i, n), candidate = u.candidate(i, n);
            store(d_u + i, d * candidate * write * (1.0f - write), n);
            store(d_u + H + i, d * load(cell_summary + i, n) * keep * (1.0f - keep), n);
            store(d_u + 2 * H + i, d * write * (1.0f - candidate * candidate), n);
            store(d_cell_summary + i, d * keep, n);
        });
        each_vector(4 * H, [&](int64_t i, int64_t n) { add_to(sums.shift, i, load(d_u + i, n), n); });
        unnormalise(r.hidden_gain, r.hidden_scale[at], sums.hidden_gain, r.normed + at * 4 * H,
                    [&](int64_t i, int64_t n) { return u.hidden_normed(i, n); });
        const float* d_normed = r.normed + at * 4 * H;
        each_vector(4 * H, [&](int64_t i, int64_t n) { add_to(sums.hidden_bias, i, load(d_normed + i, n), n); });
        unnormalise(r.input_gain, r.input_scale[at], sums.input_gain, r.gate_inputs + at * 4 * H,
                    [&](int64_t i, int64_t n) { return u.input_normed(i, n); });
    }

    // The gradient of what was normalised into `target`, where it lay, and its part in ∂γ, given ∂u.
    template <class Normed>
    void unnormalise(const float* gain, float scale, std::vector<float>& gain_sum, float* target,
                     const Normed& normed) {
        float *d = row_scratch.data(), *d_u = d_update.data();
        each_vector(4 * H, [&](int64_t i, int64_t n) {
            const Vector gradient = load(d_u + i, n);
            add_to(gain_sum, i, gradient * normed(i, n), n);
            store(d + i, gradient * load(gain + i, n), n);
        });
        normalise_backward(d, 4 * H, scale, r.released, normed);
        std::memcpy(target, d, 4 * H * sizeof(float));
    }

    // From ∂[h̃; c̃]_t to ∂g, ∂a and ∂k.
    void attend(int64_t t, int64_t b) {
        const int64_t at = place(t, b);
        float* d_key = r.d_keys + at * H;
        attention.backward(
            at, r.d_summaries + at * 2 * H, [&](int64_t n) { return state(t + n, b); }, r.relative + at * N,
            r.attention + at * N, r.d_gates + at * N, r.d_scores + at * N, d_key);
        masked(key_out, at, d_key, d_key);
    }

    void make_keys(int64_t t) {
        for (int64_t b = begin; b < end; ++b) std::memset(carried + b * H, 0, H * sizeof(float));
        multiply(r.d_keys + place(t, 0) * H, H, key_weight, key_panels, carried, H);
        for (int64_t b = begin; b < end; ++b) masked(key_in, place(t, b), carried + b * H, carried + b * H);
    }
};

}  // namespace

PRPN_API void prpn_reading_forward(const Reading* reading) {
    const Reading& r = *reading;
    const Format format = format_of(r.bf16);
    const Packed hidden(r.hidden_weight, r.hidden, 4 * r.hidden, 1, r.hidden, format, r.threads);
    const Packed key(r.key_weight, r.hidden, r.attends ? r.hidden : 0, 1, r.key_stride, format, r.threads);
    std::vector<float> buffer(r.batch * r.hidden);
    team(r.threads, [&](int64_t part, int64_t parts) { Forward(r, part, parts, key, hidden, buffer.data()).run(); });
}

PRPN_API void prpn_reading_backward(const Reading* reading) {
    const Reading& r = *reading;
    const Format format = format_of(r.bf16);
    const Packed hidden(r.hidden_weight, 4 * r.hidden, r.hidden, r.hidden, 1, format, r.threads);
    const Packed key(r.key_weight, r.hidden, r.attends ? r.hidden : 0, r.key_stride, 1, format, r.threads);
    std::vector<float> buffer(r.batch * r.hidden), carried(r.batch * r.hidden);
    std::mutex guard;
    std::map<int64_t, Sums> sums;  // by thread, so that they are added in the same order every time
    team(r.threads, [&](int64_t part, int64_t parts) {
        Backward walk(r, part, parts, key, hidden, buffer.data(), carried.data());
        walk.run();
        const std::lock_guard<std::mutex> lock(guard);
        sums.emplace(part, std::move(walk.sums));
    });
    for (const auto& [_, part] : sums) {
        const auto add = [](float* to, const std::vector<float>& from) {
            for (size_t i = 0; i < from.size(); ++i) to[i] += from[i];
        };
        add(r.d_input_gain, part.input_gain), add(r.d_shift, part.shift);
        add(r.d_hidden_bias, part.hidden_bias), add(r.d_hidden_gain, part.hidden_gain);
        add(r.d_cell_gain, part.cell_gain), add(r.d_cell_shift, part.cell_shift);
    }
}
