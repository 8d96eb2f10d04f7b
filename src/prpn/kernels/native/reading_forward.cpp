// The reading recurrence forwards; reading.h has the mathematics.
#include "api.h"
#include "reading.h"

using namespace prpn;

namespace {

class Forward : Walk {
public:
    using Walk::Walk;

    void run() {
        begin_tape();
        for (int64_t t = 0; t < r.steps; ++t) {
            if (r.attends) make_keys(t);
            for (int64_t b = begin; b < end; ++b) {
                if (r.attends) attend(t, b);
                else std::memcpy(r.summaries + place(t, b) * 2 * H, state(N + t - 1, b), 2 * H * sizeof(float));
            }
            for (int64_t b = begin; b < end; ++b) {
                recurrent_masked(r.summaries + place(t, b) * 2 * H, row_scratch.data());
                take(hidden_factors, b, row_scratch.data());
            }
            multiply(hidden_factors, hidden_panels, r.normed + place(t, 0) * 4 * H, 4 * H, {r.hidden_bias, 0});
            for (int64_t b = begin; b < end; ++b) update(t, b);
        }
    }

private:
    void begin_tape() {
        for (int64_t n = 0; n < N; ++n) {
            for (int64_t b = begin; b < end; ++b) {
                std::memcpy(state(n, b), r.past_hidden + place(n, b) * r.past_hidden_stride, H * sizeof(float));
                std::memcpy(state(n, b) + H, r.past_cells + place(n, b) * r.past_cells_stride, H * sizeof(float));
            }
        }
    }

    void make_keys(int64_t t) {
        for (int64_t b = begin; b < end; ++b) {
            masked(key_in, place(t, b), state(N + t - 1, b), row_scratch.data());
            take(key_factors, b, row_scratch.data());
        }
        const int64_t first = place(t, 0) * H;
        multiply(key_factors, key_panels, r.keys + first, H, {r.key_inputs + first, H});
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
        const int64_t at = place(t, b), H = this->H;
        float *normed = r.normed + at * 4 * H, *now = state(N + t, b), *cell = now + H, *shown = row_scratch.data();
        const float *cell_summary = r.summaries + at * 2 * H + H, *x = r.gate_inputs + at * 4 * H;
        const Spread input = spread_of(4 * H, r.released, [&](int64_t i, int64_t n) { return load(x + i, n); });
        r.input_mean[at] = input.mean;
        r.input_scale[at] = input.scale;
        const Spread hidden = spread_of(4 * H, r.released, [&](int64_t i, int64_t n) { return load(normed + i, n); });
        r.hidden_scale[at] = hidden.scale;
        const float inverse = 1.0f / hidden.scale;
        const Update u(*this, at);
        each_vector(H, [&](int64_t i, int64_t n) {
            u.fetch_next_input(i);
            const auto gate = [&](int64_t i) {
                const Vector y = (load(normed + i, n) - hidden.mean) * inverse;
                store(normed + i, y, n);
                return u.of(i, n, y).u;
            };
            const Vector write = sigmoid(gate(i)), keep = sigmoid(gate(H + i));
            const Vector candidate = hyperbolic_tangent(gate(2 * H + i));
            store(cell + i, keep * load(cell_summary + i, n) + write * candidate, n);
            store(shown + i, sigmoid(gate(3 * H + i)), n);
        });
        const Spread cell_spread = spread_of(H, r.released, [&](int64_t i, int64_t n) { return load(cell + i, n); });
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

}  // namespace

PRPN_API int32_t prpn_reading_forward(const Reading* reading) {
    return guarded([&] {
        check(reading);
        const Reading& r = *reading;
        check_array("gates", r.gates, {r.attends ? r.steps : 0, r.batch, r.slots});
        check_array("key_inputs", r.key_inputs, {r.attends ? r.steps : 0, r.batch, r.hidden});
        check_array("hidden_bias", r.hidden_bias, {4, r.hidden});
        for (const float* array : {r.past_hidden, r.past_cells}) {
            check_array("past_hidden or past_cells", array, {r.slots, r.batch, r.hidden});
        }
        for (const int64_t stride : {r.past_hidden_stride, r.past_cells_stride}) {
            check_sizes({r.slots, r.batch, stride});
        }
        const Format format = available(r.bf16 ? Format::BF16 : Format::FP32);
        const Packed hidden({r.hidden_weight, 1, r.hidden}, r.hidden, 4 * r.hidden, format, r.threads);
        const Packed key({r.key_weight, 1, r.key_stride}, r.hidden, r.attends ? r.hidden : 0, format, r.threads);
        Factors key_factors(key, r.batch), hidden_factors(hidden, r.batch);
        team(r.threads, [&](const Member& member) { Forward(r, member, key_factors, hidden_factors).run(); });
    });
}

PRPN_API int32_t prpn_reading_layout(int64_t* size, int64_t* last) {
    return layout_of<Reading>(size, last, offsetof(Reading, d_cell_shift));
}
