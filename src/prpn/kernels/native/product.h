// The product of a few rows with a matrix that is used again and again: C (+)= A · W, W packed once.
//
//     A (rows, K) · W (K, N),    W packed as panels of PANEL columns, the last one filled up with zeros
//
// A panel stays in the cache while it meets all rows, so each weight is fetched once a call, and while the one before it
// is worked on; a tile of C stays in registers while K is run through, which is done in stages where K is large. In bf16
// both factors are rounded to the 8 leading bits of their mantissa and the sums are fp32: in AMX tiles where the processor
// has them, else two at a time (bf16.h).
//
//     fp32        panel[k][column]
//     bf16        panel[k / 2][column][k % 2], K filled up to a multiple of 2
//     bf16 tiles  panel[k / 32][half][k / 2 % 16][column % 16][k % 2], K filled up to a multiple of 32
#pragma once

#include <array>
#include <utility>

#include "aligned.h"
#include "threads.h"
#include "tiles.h"
#include "vector.h"

namespace prpn {

constexpr int64_t PANEL = 2 * WIDTH;

enum class Format : int32_t { FP32 = 0, BF16 = 1, TILES = 2 };

// How a caller's wish for fp32 or bf16 is met by this library.
inline Format format_of(int32_t bf16) {
    if (!bf16) return Format::FP32;
    return Tiles::NATIVE ? Format::TILES : Format::BF16;
}

struct Fp32 {
    using Weight = float;
    using Factor = float;
    using Weights = Vector;
    static constexpr int64_t TOGETHER = 1;

    static Weights load(const Weight* from) { return prpn::load(from); }
    static Weights splat(const Factor* from) { return prpn::splat(*from); }
    static Vector add(Vector sum, Weights factor, Weights weights) { return sum + factor * weights; }
};

// A matrix W (K, N) ready for `product`; element (k, n) is read at source[k * row_stride + n * column_stride].
class Packed {
public:
    Packed(const float* source, int64_t depth, int64_t columns, int64_t row_stride, int64_t column_stride,
           Format format, int64_t threads)
        : depth_(depth), columns_(columns), format_(format) {
        const int64_t width = format == Format::TILES ? Tiles::PANEL : PANEL;
        panels_ = (columns + width - 1) / width;
        panel_size_ = width * padded_depth();
        if (format == Format::FP32) floats_.resize(panels_ * panel_size_);
        else halves_.resize(panels_ * panel_size_);
        parallel(panels_, threads, 1, [&](int64_t begin, int64_t end) {
            for (int64_t panel = begin; panel < end; ++panel) {
                const int64_t first = panel * width, count = std::min(width, columns - first);
                const float* from = source + first * column_stride;
                const auto each = [&](auto* to, const auto& offset, const auto& convert) {
                    for (int64_t k = 0; k < depth; ++k) {
                        for (int64_t n = 0; n < count; ++n) {
                            to[offset(k, n)] = convert(from[k * row_stride + n * column_stride]);
                        }
                    }
                };
                if (format == Format::FP32) {
                    const auto offset = [](int64_t k, int64_t n) { return k * PANEL + n; };
                    each(floats_.data() + panel * panel_size_, offset, [](float value) { return value; });
                } else if (format == Format::BF16) {
                    const auto offset = [](int64_t k, int64_t n) { return (k / 2 * PANEL + n) * 2 + k % 2; };
                    each(halves_.data() + panel * panel_size_, offset, to_bf16);
                } else {
                    each(halves_.data() + panel * panel_size_, Tiles::offset, to_bf16);
                }
            }
        });
    }

    int64_t depth() const { return depth_; }
    int64_t padded_depth() const {
        const int64_t together = format_ == Format::FP32 ? 1 : format_ == Format::BF16 ? Bf16::TOGETHER : Tiles::DEPTH;
        return (depth_ + together - 1) / together * together;
    }
    int64_t columns() const { return columns_; }
    Format format() const { return format_; }
    int64_t panels() const { return panels_; }
    const float* floats(int64_t panel) const { return floats_.data() + panel * panel_size_; }
    const uint16_t* halves(int64_t panel) const { return halves_.data() + panel * panel_size_; }

private:
    int64_t depth_, columns_, panels_, panel_size_;
    Format format_;
    Aligned<float> floats_;
    Aligned<uint16_t> halves_;
};

// As many rows at once as leave registers for their sums: 24 of 32 with AVX-512, 12 of 16 with AVX2.
constexpr int64_t MOST_ROWS = WIDTH == 16 ? 12 : 6;

// Rows of a panel that meet all rows of A before the next: with 64 rows of A they fill half of a cache of 1 MiB.
constexpr int64_t STAGE = 1280;

// What will be needed next: `step` numbers of it are fetched for each row of a panel.
template <class Weight>
struct Ahead {
    const Weight* from;
    int64_t step;
};

// C (ROWS, columns ≤ PANEL) += A (ROWS, K) · panel, K being `length` times the numbers that are taken together.
template <class Kind, int64_t ROWS>
void meet_panel(const typename Kind::Factor* a, int64_t a_stride, const typename Kind::Weight* panel, int64_t length,
                Ahead<typename Kind::Weight> ahead, float* c, int64_t c_stride, int64_t columns) {
    constexpr int64_t TOGETHER = Kind::TOGETHER;
    Vector sums[ROWS][2] = {};
    for (int64_t k = 0; k < length; ++k) {
        __builtin_prefetch(ahead.from + k * ahead.step, 0, 2);
        const auto left = Kind::load(panel + k * PANEL * TOGETHER);
        const auto right = Kind::load(panel + (k * PANEL + WIDTH) * TOGETHER);
#pragma GCC unroll 12
        for (int64_t row = 0; row < ROWS; ++row) {
            const auto factor = Kind::splat(a + row * a_stride + k * TOGETHER);
            sums[row][0] = Kind::add(sums[row][0], factor, left);
            sums[row][1] = Kind::add(sums[row][1], factor, right);
        }
    }
    const int64_t left_count = std::min(WIDTH, columns), right_count = columns - left_count;
#pragma GCC unroll 12
    for (int64_t row = 0; row < ROWS; ++row) {
        float* target = c + row * c_stride;
        store(target, load(target, left_count) + sums[row][0], left_count);
        if (right_count > 0) {
            store(target + WIDTH, load(target + WIDTH, right_count) + sums[row][1], right_count);
        }
    }
}

// The function above for each number of rows that it may be given.
template <class Kind, size_t... LESS_ONE>
constexpr auto by_rows(std::index_sequence<LESS_ONE...>) {
    return std::array{&meet_panel<Kind, int64_t(LESS_ONE) + 1>...};
}

// The rounded rows of A, kept between calls so that no memory is asked for in a loop over time.
struct ProductScratch {
    Aligned<uint16_t> halves;
    Aligned<Bf16::Factor> factors;
};

inline void product_in_tiles(const float* a, int64_t a_stride, int64_t rows, const Packed& w, Share panels, float* c,
                             int64_t c_stride, Aligned<uint16_t>& halves) {
    const int64_t depth = w.padded_depth();
    halves.assign(depth * Tiles::padded_rows(rows), 0);
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t k = 0; k < w.depth(); ++k) halves[row * depth + k] = to_bf16(a[row * a_stride + k]);
    }
    Tiles tiles;
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const int64_t first = panel * Tiles::PANEL, columns = std::min(Tiles::PANEL, w.columns() - first);
        tiles.meet_panel(halves.data(), depth, rows, w.halves(panel), c + first, c_stride, columns);
    }
}

template <class Kind, class WeightsOf>
void product_in_panels(const typename Kind::Factor* a, int64_t a_stride, int64_t rows, const Packed& w, Share panels,
                       const WeightsOf& weights_of, float* c, int64_t c_stride) {
    constexpr auto functions = by_rows<Kind>(std::make_index_sequence<MOST_ROWS>());
    constexpr int64_t TOGETHER = Kind::TOGETHER;
    const int64_t length = w.padded_depth() / TOGETHER;
    const int64_t blocks = (rows + MOST_ROWS - 1) / MOST_ROWS, stages = (length + STAGE - 1) / STAGE;
    const int64_t step = PANEL / blocks * TOGETHER;
    for (int64_t stage = 0; stage < stages; ++stage) {
        const int64_t top = stage * length / stages, part = (stage + 1) * length / stages - top;
        for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
            const int64_t first = panel * PANEL, columns = std::min(PANEL, w.columns() - first);
            const auto* weights = weights_of(panel) + top * PANEL * TOGETHER;
            const auto* next = weights_of(panel + 1 < panels.end ? panel + 1 : panels.begin) + top * PANEL * TOGETHER;
            for (int64_t block = 0; block < blocks; ++block) {
                const int64_t begin = block * rows / blocks, end = (block + 1) * rows / blocks;
                functions[end - begin - 1](a + begin * a_stride + top * TOGETHER, a_stride, weights, part,
                                           {next + block * part * step, step}, c + begin * c_stride + first, c_stride,
                                           columns);
            }
        }
    }
}

// C (rows, N) += A (rows, K) · W, for the columns of some panels. Threads that share the panels of a matrix keep their
// parts of it in their own caches from one call to the next.
inline void product(const float* a, int64_t a_stride, int64_t rows, const Packed& w, Share panels, float* c,
                    int64_t c_stride, ProductScratch& scratch) {
    if (panels.begin == panels.end) return;
    if (w.format() == Format::TILES) {
        return product_in_tiles(a, a_stride, rows, w, panels, c, c_stride, scratch.halves);
    }
    if (w.format() == Format::FP32) {
        const auto weights_of = [&](int64_t panel) { return w.floats(panel); };
        return product_in_panels<Fp32>(a, a_stride, rows, w, panels, weights_of, c, c_stride);
    }
    const int64_t depth = w.padded_depth();
    scratch.factors.assign(rows * depth, 0);
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t k = 0; k < w.depth(); ++k) {
            scratch.factors[row * depth + k] = Bf16::factor(a[row * a_stride + k]);
        }
    }
    const auto weights_of = [&](int64_t panel) { return w.halves(panel); };
    product_in_panels<Bf16>(scratch.factors.data(), depth, rows, w, panels, weights_of, c, c_stride);
}

}  // namespace prpn
