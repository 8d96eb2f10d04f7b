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
        : input_gain(4 * hidden, 0),
          shift(4 * hidden, 0),
          hidden_bias(4 * hidden, 0),
          hidden_gain(4 * hidden, 0),
          cell_gain(hidden, 0),
          cell_shift(hidden, 0) {}

    Aligned<float> input_gain, shift, hidden_bias, hidden_gain, cell_gain, cell_shift;
};

inline void add_to(float* sums, int64_t i, Vector terms, int64_t n) { store(sums + i, load(sums + i, n) + terms, n); }

class Backward : Walk {
public:
    // recalled and carried are (B, H) and shared by all threads: W_hᵀ ∂(W_h h̃) and m_in W_kᵀ ∂k_{t+1}.
    Backward(const Reading& r, const Member& member, Factors& key, Factors& hidden, float* recalled, float* carried)
        : Walk(r, member, key, hidden),
          sums(H),
          recalled(recalled),
          carried(carried),
          d_state(2 * H),
          cell_normed(H),
          d_update(4 * H) {}

    void run() {
        for (int64_t t = r.steps - 1; t >= 0; --t) {
            for (int64_t b = begin; b < end; ++b) {
                gather(t, b);
                update(t, b);
            }
            multiply(hidden_factors, hidden_panels, recalled, H, ZERO);
            for (int64_t b = begin; b < end; ++b) {
                recurrent_masked(recalled + b * H, r.d_summaries + place(t, b) * 2 * H);
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
    float *const recalled, *const carried;
    Aligned<float> d_state, cell_normed, d_update;
    std::vector<Term> terms, key_terms;

    // ∂[h; c]_t into d_state; t < 0 is the past.
    void gather(int64_t t, int64_t b) {
        wanted(r.d_hidden, N + t, b, d_state.data());
        wanted(r.d_cells, N + t, b, d_state.data() + H);
        if (r.d_now && t >= 0) {
            const float* now = r.d_now + place(t, b) * H;
            each_vector(H, [&](int64_t i, int64_t n) { add_to(d_state.data(), i, load(now + i, n), n); });
        }
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
        const int64_t at = place(t, b), H = this->H;
        const float *cell_gain = r.cell_gain, *cell_shift = r.cell_shift;
        float *d_recalled = r.normed + at * 4 * H, *d_input = r.gate_inputs + at * 4 * H, *normed = cell_normed.data();
        float *cell_gain_sum = sums.cell_gain.data(), *cell_shift_sum = sums.cell_shift.data();
        float *shift_sum = sums.shift.data(), *bias_sum = sums.hidden_bias.data();
        float *hidden_gain_sum = sums.hidden_gain.data(), *input_gain_sum = sums.input_gain.data();
        const float *d_hidden = d_state.data(), *d_cell = d_state.data() + H, *cell = state(N + t, b) + H;
        const float* cell_summary = r.summaries + at * 2 * H + H;
        float *d_u = d_update.data(), *d_shown = row_scratch.data(), *d_cell_summary = r.d_summaries + at * 2 * H + H;
        const float mean = r.cell_mean[at], inverse = 1.0f / r.cell_scale[at];
        const Update u(*this, at);
        Vector total{}, projection{};
        each_vector(H, [&](int64_t i, int64_t n) {
            u.fetch_next_input(i);
            __builtin_prefetch(cell + 2 * H + i);  // of the next stream, as u does
            __builtin_prefetch(cell_summary + 2 * H + i);
            const Vector y = (load(cell + i, n) - mean) * inverse, gain = load(cell_gain + i, n);
            const Vector shown = hyperbolic_tangent(y * gain + load(cell_shift + i, n));
            const Vector show = sigmoid(u(3 * H + i, n).u), d = load(d_hidden + i, n);
            const Vector d_inner = d * show * (1.0f - shown * shown), d_normed = d_inner * gain;
            store(d_u + 3 * H + i, d * shown * show * (1.0f - show), n);
            store(normed + i, y, n);
            add_to(cell_gain_sum, i, d_inner * y, n);
            add_to(cell_shift_sum, i, d_inner, n);
            store(d_shown + i, d_normed, n);
            total += d_normed;
            projection += d_normed * y;
        });
        const Unnormalise cells(sum(total), sum(projection), H, r.cell_scale[at], r.released);
        Vector hidden_total{}, hidden_projection{}, input_total{}, input_projection{};
        const auto learn = [&](int64_t i, int64_t n, const Update::Part& part, Vector d) {
            const Vector of_hidden = d * part.hidden_gain, of_input = d * part.input_gain;
            add_to(shift_sum, i, d, n);
            add_to(hidden_gain_sum, i, d * part.hidden, n);
            add_to(input_gain_sum, i, d * part.input, n);
            hidden_total += of_hidden;
            hidden_projection += of_hidden * part.hidden;
            input_total += of_input;
            input_projection += of_input * part.input;
            store(d_u + i, d, n);
        };
        each_vector(H, [&](int64_t i, int64_t n) {
            const Vector d = load(d_cell + i, n) + cells(load(d_shown + i, n), load(normed + i, n));
            u.fetch_next_normed(i);
            const Update::Part i_part = u(i, n), f_part = u(H + i, n), c_part = u(2 * H + i, n);
            const Vector write = sigmoid(i_part.u), keep = sigmoid(f_part.u), candidate = hyperbolic_tangent(c_part.u);
            store(d_cell_summary + i, d * keep, n);
            learn(i, n, i_part, d * candidate * write * (1.0f - write));
            learn(H + i, n, f_part, d * load(cell_summary + i, n) * keep * (1.0f - keep));
            learn(2 * H + i, n, c_part, d * write * (1.0f - candidate * candidate));
            learn(3 * H + i, n, u(3 * H + i, n), load(d_u + 3 * H + i, n));
        });
        const Unnormalise hidden(sum(hidden_total), sum(hidden_projection), 4 * H, r.hidden_scale[at], r.released);
        const Unnormalise input(sum(input_total), sum(input_projection), 4 * H, r.input_scale[at], r.released);
        each_vector(4 * H, [&](int64_t i, int64_t n) {
            const Vector d = load(d_u + i, n);
            const Update::Part part = u(i, n);
            const Vector of_hidden = hidden(d * part.hidden_gain, part.hidden);
            add_to(bias_sum, i, of_hidden, n);
            store(d_recalled + i, of_hidden, n);
            store(d_input + i, input(d * part.input_gain, part.input), n);
        });
        take(hidden_factors, b, d_recalled);
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
        for (int64_t b = begin; b < end; ++b) take(key_factors, b, r.d_keys + place(t, b) * H);
        multiply(key_factors, key_panels, carried, H, ZERO);
        for (int64_t b = begin; b < end; ++b) masked(key_in, place(t, b), carried + b * H, carried + b * H);
    }
};

void check_gradients(const Reading& r) {
    const int64_t T = r.steps, B = r.batch, N = r.slots, H = r.hidden, attending = r.attends ? T : 0;
    check_array("d_past", r.d_past, {r.keeps_past_gradient ? N : 0, B, 2, H});
    for (const float* array : {r.d_gates, r.d_scores}) check_array("d_gates or d_scores", array, {attending, B, N});
    check_array("d_keys", r.d_keys, {attending, B, H});
    check_array("d_summaries", r.d_summaries, {T, B, 2, H});
    for (const float* array : {r.d_input_gain, r.d_shift, r.d_hidden_bias, r.d_hidden_gain}) {
        check_array("a gradient of 4H", array, {4, H});
    }
    for (const float* array : {r.d_cell_gain, r.d_cell_shift}) check_array("d_cell_gain or d_cell_shift", array, {H});
}

}  // namespace

PRPN_API int32_t prpn_reading_backward(const Reading* reading) {
    return guarded([&] {
        check(reading);
        const Reading& r = *reading;
        check_gradients(r);
        const Format format = available(r.bf16 ? Format::BF16 : Format::FP32);
        const Packed hidden({r.hidden_weight, r.hidden, 1}, 4 * r.hidden, r.hidden, format, r.threads);
        const Packed key({r.key_weight, r.key_stride, 1}, r.hidden, r.attends ? r.hidden : 0, format, r.threads);
        Factors key_factors(key, r.batch), hidden_factors(hidden, r.batch);
        Aligned<float> recalled(r.batch * r.hidden), carried(r.batch * r.hidden);
        std::mutex guard;
        std::map<int64_t, Sums> sums;  // by thread, so that they are added in the same order every time
        team(r.threads, [&](const Member& member) {
            Backward walk(r, member, key_factors, hidden_factors, recalled.data(), carried.data());
            walk.run();
            const std::lock_guard<std::mutex> lock(guard);
            sums.emplace(member.part, std::move(walk.sums));
        });
        for (const auto& [_, part] : sums) {
            const auto add = [](float* to, const Aligned<float>& from) {
                for (size_t i = 0; i < from.size(); ++i) to[i] += from[i];
            };
            add(r.d_input_gain, part.input_gain), add(r.d_shift, part.shift);
            add(r.d_hidden_bias, part.hidden_bias), add(r.d_hidden_gain, part.hidden_gain);
            add(r.d_cell_gain, part.cell_gain), add(r.d_cell_shift, part.cell_shift);
        }
    });
}
