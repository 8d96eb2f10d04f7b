// The reading recurrence backwards through time; reading.h has the mathematics.
#include <map>
#include <mutex>

#include "api.h"
#include "reading.h"

using namespace prpn;

namespace {

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
        wanted(r.d_hidden, N + t, b, d_state.data());
        wanted(r.d_cells, N + t, b, d_state.data() + H);
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

    // What is wanted of a row of the tape from outside of the recurrence.
    void wanted(const float* gradient, int64_t row, int64_t b, float* to) const {
        if (gradient) {
            std::memcpy(to, gradient + place(row, b) * H, H * sizeof(float));
        } else {
            std::memset(to, 0, H * sizeof(float));
        }
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

PRPN_API void prpn_reading_backward(const Reading* reading) {
    const Reading& r = *reading;
    const Format format = available(r.bf16 ? Format::BF16 : Format::FP32);
    const Packed hidden({r.hidden_weight, r.hidden, 1}, 4 * r.hidden, r.hidden, format, r.threads);
    const Packed key({r.key_weight, r.key_stride, 1}, r.hidden, r.attends ? r.hidden : 0, format, r.threads);
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
