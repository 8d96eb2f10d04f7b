// One step of Adam for all weights: their gradients are read once for the norm and once for the step.
//
//     g ← g / max(1, |g| / clip) + decay · w                  |g| over all weights together; no clip: g as it is
//     m ← β₁ m + (1 − β₁) g        v ← β₂ v + (1 − β₂) g²
//     w ← w − η m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + ε)        without m, β₁ = 0: g stands for it
#include <cmath>
#include <vector>

#include "api.h"
#include "checks.h"
#include "normalise.h"
#include "threads.h"

using namespace prpn;

// Mirrors kernels/native_adam.py, field by field.
struct Learned {
    float* weight;
    const float* gradient;
    float *mean, *square;  // m, or none, and v
    int64_t count, step;
};

struct Settings {
    double rate, beta1, beta2, epsilon, decay, clip;
};

namespace {

// What a thread takes at a time; sums of blocks are added in their order, whoever made them.
constexpr int64_t BLOCK = 1 << 15;

struct Block {
    int64_t tensor, begin, end;
};

void check(const Learned* tensors, int64_t count, const Settings* settings) {
    check_array("tensors", tensors, {count});
    require(settings, "no settings");
    for (int64_t i = 0; i < count; ++i) {
        check_array("weight", tensors[i].weight, {tensors[i].count});
        check_array("gradient", tensors[i].gradient, {tensors[i].count});
        check_array("square", tensors[i].square, {tensors[i].count});
        require(tensors[i].step >= 1, "steps are counted from 1");
    }
}

std::vector<Block> blocks_of(const Learned* tensors, int64_t count) {
    std::vector<Block> blocks;
    for (int64_t tensor = 0; tensor < count; ++tensor) {
        for (int64_t begin = 0; begin < tensors[tensor].count; begin += BLOCK) {
            blocks.push_back({tensor, begin, std::min(begin + BLOCK, tensors[tensor].count)});
        }
    }
    return blocks;
}

// What gradients are multiplied with; a norm that is not a number spoils the weights, so that it is noticed.
float clipping(const Learned* tensors, const std::vector<Block>& blocks, double clip, int64_t threads) {
    if (clip <= 0) return 1;
    std::vector<double> squares(blocks.size());
    parallel(int64_t(blocks.size()), threads, 1, [&](int64_t first, int64_t last) {
        for (int64_t number = first; number < last; ++number) {
            const Block& block = blocks[number];
            const float* gradient = tensors[block.tensor].gradient + block.begin;
            squares[number] = sum_over(block.end - block.begin, [&](int64_t i, int64_t n) {
                const Vector g = load(gradient + i, n);
                return g * g;
            });
        }
    });
    double total = 0;
    for (const double square : squares) total += square;
    const double excess = (std::sqrt(total) + 1e-6) / clip;  // as PyTorch's clip_grad_norm_
    return excess < 1 ? 1.0f : float(1 / excess);
}

void move(const Learned& one, const Block& block, const Settings& s, float clipped) {
    const float beta1 = float(s.beta1), beta2 = float(s.beta2), epsilon = float(s.epsilon), decay = float(s.decay);
    const float fresh1 = float(1 - s.beta1), fresh2 = float(1 - s.beta2);  // of the exact β: 1 − 0.999 loses digits
    const float rate = float(s.rate / (1 - std::pow(s.beta1, double(one.step))));
    const float spread = float(1 / std::sqrt(1 - std::pow(s.beta2, double(one.step))));
    each_vector(block.end - block.begin, [&](int64_t column, int64_t n) {
        const int64_t i = block.begin + column;
        const Vector weight = load(one.weight + i, n), g = load(one.gradient + i, n) * clipped + decay * weight;
        Vector mean = g;
        if (one.mean) {
            mean = beta1 * load(one.mean + i, n) + fresh1 * g;
            store(one.mean + i, mean, n);
        }
        const Vector square = beta2 * load(one.square + i, n) + fresh2 * g * g;
        store(one.square + i, square, n);
        store(one.weight + i, weight - rate * mean / (square_root(square) * spread + epsilon), n);
    });
}

}  // namespace

PRPN_API int32_t prpn_learned_layout(int64_t* size, int64_t* last) {
    return layout_of<Learned>(size, last, offsetof(Learned, step));
}

PRPN_API int32_t prpn_settings_layout(int64_t* size, int64_t* last) {
    return layout_of<Settings>(size, last, offsetof(Settings, clip));
}

PRPN_API int32_t prpn_adam(const Learned* tensors, int64_t count, const Settings* settings, int64_t threads) {
    return guarded([&] {
        check(tensors, count, settings);
        check_threads(threads);
        const std::vector<Block> blocks = blocks_of(tensors, count);
        const float clipped = clipping(tensors, blocks, settings->clip, threads);
        parallel(int64_t(blocks.size()), threads, 1, [&](int64_t first, int64_t last) {
            for (int64_t number = first; number < last; ++number) {
                move(tensors[blocks[number].tensor], blocks[number], *settings, clipped);
            }
        });
    });
}
