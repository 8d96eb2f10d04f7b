// The parsing network's convolution over time as products that add up in place, forwards and backwards.
//
//     y_t = b + Σ_k W_k x_{t+k}        ∂x_{t+k} += W_kᵀ ∂y_t        ∂W_k = Σ_t ∂y_t x_{t+k}ᵀ
//
// Time is the first dimension, so the rows x_k … x_{k+T−1} lie together and nothing is unfolded or copied. Forwards the
// products are fp32 whatever the others are: sharp gates multiply an error in the distances.
//
// Where there are rows enough, each three taps give two neighbouring outputs by four products in place of six (Winograd's
// minimal filtering F(2, 3), the same numbers but for rounding):
//
//     m_0 = W_0 (x_t − x_{t+2})                       m_1 = ½ (W_0 + W_1 + W_2) (x_{t+1} + x_{t+2})
//     m_3 = W_2 (x_{t+1} − x_{t+3})                   m_2 = ½ (W_0 − W_1 + W_2) (x_{t+2} − x_{t+1})
//     y_t = m_0 + m_1 + m_2                           y_{t+1} = m_1 − m_2 − m_3
//
// Three small matrices, for x, W and m, say all of this, and transposed they say what comes back.
//
//     # T time, B batch, K taps, E embedding, C channels; P pairs of outputs, G groups of three taps
#include "api.h"
#include "checks.h"
#include "combining.h"
#include "product.h"

using namespace prpn;

namespace {

constexpr int64_t TAPS = 3, PAIR = 2, PRODUCTS = 4;
constexpr Combination<PRODUCTS, PRODUCTS> OF_INPUTS{{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}};
constexpr Combination<PRODUCTS, TAPS> OF_WEIGHTS{{{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}}};
constexpr Combination<PAIR, PRODUCTS> OF_PRODUCTS{{{1, 1, 1, 0}, {0, 1, -1, -1}}};
constexpr int64_t IN_BOTH = 1;  // the product that both outputs contain as it is: the bias goes with it

// Mirrors kernels/native_convolution.py, field by field.
struct Convolution {
    int64_t steps, batch, taps, embedding, channels, paired, threads;
    int32_t format;                     // backwards
    const float *tape, *weight, *bias;  // (K − 1 + T, B, E), (K, C, E), (C)
    float* result;                      // (T, B, C)
    float *inputs, *weights;            // (4, P·B, G·E), (4, C, G·E): what the products are of; the first `paired` taps
    const float* d_result;              // (T, B, C)
    float *d_tape, *d_weight, *d_bias;  // as above
};

void check(const Convolution* convolution) {
    require(convolution, "no arguments");
    const Convolution& c = *convolution;
    check_sizes({c.steps, c.batch, c.taps, c.embedding, c.channels});
    check_threads(c.threads);
    require(c.taps >= 1, "a convolution has taps");
    require(c.paired >= 0 && c.paired <= c.taps && c.paired % TAPS == 0, "taps are paired by threes");
    require(c.paired == 0 || c.steps >= PAIR, "there is no pair of outputs");
    const int64_t pairs = (c.steps + 1) / PAIR, groups = c.paired / TAPS;
    check_array("tape", c.tape, {c.taps - 1 + c.steps, c.batch, c.embedding});
    check_array("weight", c.weight, {c.taps, c.channels, c.embedding});
    check_array("inputs", c.inputs, {PRODUCTS, pairs, c.batch, groups, c.embedding});
    check_array("weights", c.weights, {PRODUCTS, c.channels, groups, c.embedding});
    check_sizes({PRODUCTS, pairs, c.batch, c.channels});
}

class Run {
public:
    explicit Run(const Convolution& c)
        : c(c),
          B(c.batch),
          E(c.embedding),
          C(c.channels),
          rows(c.steps * c.batch),
          pairs((c.steps + 1) / PAIR),
          groups(c.paired / TAPS),
          width(groups * E) {}

    void forward() const {
        Start start{c.bias, 0};
        if (c.paired) {
            combine_inputs_and_weights();
            Aligned<float> products(PRODUCTS * pairs * B * C);
            for (int64_t i = 0; i < PRODUCTS; ++i) {
                multiply(input(i), pairs * B, {weights(i), 1, width}, width, C, Format::FP32,
                         products.data() + i * pairs * B * C, i == IN_BOTH ? start : ZERO, c.threads);
            }
            combine(OF_PRODUCTS, by_pair(products.data()), outputs(c.result), B, C, false, c.threads);
            start = {c.result, C};
        }
        for (int64_t k = c.paired; k < c.taps; ++k) {
            multiply(tap_of(c.tape, k), rows, {c.weight + k * C * E, 1, E}, E, C, Format::FP32, c.result, start,
                     c.threads);
            start = {c.result, C};
        }
    }

    void backward() const {
        const Format format = available(Format(c.format));
        std::fill(c.d_tape, c.d_tape + (c.taps - 1 + c.steps) * B * E, 0.0f);
        if (c.paired) return_to_pairs(format);
        for (int64_t k = c.paired; k < c.taps; ++k) {
            float* d_rows = c.d_tape + k * B * E;
            multiply({c.d_result, C, 1}, rows, {c.weight + k * C * E, E, 1}, C, E, format, d_rows, {d_rows, E},
                     c.threads);
            multiply({c.d_result, 1, C}, C, tap_of(c.tape, k), rows, E, format, c.d_weight + k * C * E, ZERO,
                     c.threads);
        }
        sum_of_rows(c.d_result, C, rows, C, c.d_bias, c.threads);
    }

private:
    const Convolution& c;
    const int64_t B, E, C, rows, pairs, groups, width;

    void combine_inputs_and_weights() const {
        for (int64_t group = 0; group < groups; ++group) {
            Arrays<PRODUCTS, const float> windows;
            for (int64_t k = 0; k < PRODUCTS; ++k) windows[k] = every_second(c.tape, TAPS * group + k);
            combine(OF_INPUTS, windows, of_group(c.inputs, group), B, E, false, c.threads);
        }
        combine(OF_WEIGHTS, by_tap(c.weight), by_group(c.weights), C, E, false, c.threads);
    }

    void return_to_pairs(Format format) const {
        Aligned<float> d_products(PRODUCTS * pairs * B * C), d_inputs(PRODUCTS * pairs * B * width),
            d_weights(PRODUCTS * C * width);
        combine(transposed(OF_PRODUCTS), outputs(c.d_result), by_pair(d_products.data()), B, C, false, c.threads);
        for (int64_t i = 0; i < PRODUCTS; ++i) {
            const float* d_product = d_products.data() + i * pairs * B * C;
            multiply({d_product, 1, C}, C, input(i), pairs * B, width, format, d_weights.data() + i * C * width, ZERO,
                     c.threads);
            multiply({d_product, C, 1}, pairs * B, {weights(i), width, 1}, C, width, format,
                     d_inputs.data() + i * pairs * B * width, ZERO, c.threads);
        }
        combine(transposed(OF_WEIGHTS), by_group(d_weights.data()), by_tap(c.d_weight), C, E, false, c.threads);
        constexpr auto BACK = transposed(OF_INPUTS);
        for (int64_t group = 0; group < groups; ++group) {
            for (int64_t k = 0; k < PRODUCTS; k += PAIR) {  // windows overlap by two
                Arrays<PAIR> windows;
                for (int64_t i = 0; i < PAIR; ++i) windows[i] = every_second(c.d_tape, TAPS * group + k + i);
                const Combination<PAIR, PRODUCTS> some{BACK[k], BACK[k + 1]};
                combine(some, of_group(d_inputs.data(), group), windows, B, E, true, c.threads);
            }
        }
    }

    // Rows (T·B, E) from time k on.
    Matrix tap_of(const float* tape, int64_t k) const { return {tape + k * B * E, E, 1}; }

    // Factors of a product: (P·B, G·E) and (C, G·E).
    Matrix input(int64_t i) const { return {c.inputs + i * pairs * B * width, width, 1}; }
    const float* weights(int64_t i) const { return c.weights + i * C * width; }

    // (P, B, E) from a place on; one less where the tape ends, an odd number of outputs having half a pair.
    template <class Number>
    ArrayOf<Number> every_second(Number* tape, int64_t first) const {
        const int64_t end = std::min(first + PAIR * pairs, c.taps - 1 + c.steps);
        return {tape + first * B * E, (end - first + 1) / PAIR, PAIR * B * E, E};
    }

    // (P, B, E) of a group in (4, P, B, G, E).
    Arrays<PRODUCTS> of_group(float* inputs, int64_t group) const {
        Arrays<PRODUCTS> arrays;
        for (int64_t i = 0; i < PRODUCTS; ++i) {
            arrays[i] = {inputs + i * pairs * B * width + group * E, pairs, B * width, width};
        }
        return arrays;
    }

    // (G, C, E) in (4, C, G, E), and of each of the three taps in (G, 3, C, E).
    Arrays<PRODUCTS> by_group(float* weights) const {
        Arrays<PRODUCTS> arrays;
        for (int64_t i = 0; i < PRODUCTS; ++i) arrays[i] = {weights + i * C * width, groups, E, width};
        return arrays;
    }
    template <class Number>
    Arrays<TAPS, Number> by_tap(Number* weight) const {
        Arrays<TAPS, Number> arrays;
        for (int64_t k = 0; k < TAPS; ++k) arrays[k] = {weight + k * C * E, groups, TAPS * C * E, E};
        return arrays;
    }

    // (P, B, C) of each product, and of the first and the second output of each pair.
    Arrays<PRODUCTS> by_pair(float* products) const {
        Arrays<PRODUCTS> arrays;
        for (int64_t i = 0; i < PRODUCTS; ++i) arrays[i] = {products + i * pairs * B * C, pairs, B * C, C};
        return arrays;
    }
    template <class Number>
    Arrays<PAIR, Number> outputs(Number* result) const {
        Arrays<PAIR, Number> arrays;
        for (int64_t i = 0; i < PAIR; ++i) {
            arrays[i] = {result + i * B * C, (c.steps + 1 - i) / PAIR, PAIR * B * C, C};
        }
        return arrays;
    }
};

}  // namespace

PRPN_API int32_t prpn_convolution_forward(const Convolution* convolution) {
    return guarded([&] {
        check(convolution);
        const Convolution& c = *convolution;
        check_array("bias", c.bias, {c.channels});
        check_array("result", c.result, {c.steps, c.batch, c.channels});
        Run(c).forward();
    });
}

PRPN_API int32_t prpn_convolution_backward(const Convolution* convolution) {
    return guarded([&] {
        check(convolution);
        const Convolution& c = *convolution;
        check_kind("format", c.format, FORMATS);
        check_array("d_result", c.d_result, {c.steps, c.batch, c.channels});
        check_array("d_tape", c.d_tape, {c.taps - 1 + c.steps, c.batch, c.embedding});
        check_array("d_weight", c.d_weight, {c.taps, c.channels, c.embedding});
        check_array("d_bias", c.d_bias, {c.channels});
        Run(c).backward();
    });
}

PRPN_API int32_t prpn_convolution_layout(int64_t* size, int64_t* last) {
    return layout_of<Convolution>(size, last, offsetof(Convolution, d_bias));
}
