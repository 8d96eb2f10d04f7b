// The two factors of a product A (rows, K) · W (K, N) as it wants them in memory: W packed as panels of columns, rows of A
// taken one after the other, both rounded if need be.
//
//     fp32        panel[k][column]
//     bf16        panel[k / 2][column][k % 2], K filled up to a multiple of 2
//     bf16 tiles  panel[k / 32][half][k / 2 % 16][column % 16][k % 2], K filled up to a multiple of 32
#pragma once

#include <algorithm>
#include <tuple>

#include "aligned.h"
#include "bf16.h"
#include "threads.h"
#include "tiles.h"
#include "vector.h"

namespace prpn {

constexpr int64_t PANEL = 2 * WIDTH;

enum class Format : int32_t { FP32 = 0, BF16 = 1, TILES = 2 };

// How a wish for fp32 or bf16 is met by this library.
inline Format available(Format wish) { return wish == Format::BF16 && Tiles::NATIVE ? Format::TILES : wish; }

// A way to multiply: types of factors and weights, how many of them along K are taken together, and where they lie in a
// panel: neighbours along K beside each other, runs of 16 columns after each other.
struct Fp32 {
    using Weight = float;
    using Factor = float;
    using Weights = Vector;
    static constexpr int64_t TOGETHER = 1, NEIGHBOURS = 1, COLUMNS = PANEL;

    static Weight weight(float value) { return value; }
    static Factor factor(float value) { return value; }
    static int64_t offset(int64_t k, int64_t column) { return k * PANEL + column; }
    static Weights load(const Weight* from) { return prpn::load(from); }
    static Weights splat(const Factor* from) { return prpn::splat(*from); }
    static Vector add(Vector sum, Weights factor, Weights weights) { return sum + factor * weights; }
};

template <class Action>
void with_kind(Format format, const Action& action) {
    if (format == Format::FP32) return action(Fp32());
    if (format == Format::BF16) return action(Bf16());
    action(Tiles());
}

template <class Kind>
int64_t padded(int64_t depth) {
    return (depth + Kind::TOGETHER - 1) / Kind::TOGETHER * Kind::TOGETHER;
}

using Buffers = std::tuple<Aligned<float>, Aligned<uint16_t>>;

// A matrix that is read at from[row * row_stride + column * column_stride]; one of the strides is 1.
template <class Number>
struct MatrixOf {
    const Number* from;
    int64_t row_stride, column_stride;
};

using Matrix = MatrixOf<float>;

// A matrix W (K, N) ready to be multiplied with, as panels of columns, the last one filled up with zeros.
class Packed {
public:
    Packed(Matrix source, int64_t depth, int64_t columns, Format format, int64_t threads)
        : depth_(depth), columns_(columns), format_(format) {
        with_kind(format, [&](auto kind) {
            using Kind = decltype(kind);
            panels_ = (columns + Kind::COLUMNS - 1) / Kind::COLUMNS;
            panel_size_ = Kind::COLUMNS * padded<Kind>(depth);
            std::get<Aligned<typename Kind::Weight>>(buffers_).resize(panels_ * panel_size_);
            parallel(panels_, threads, 1, [&](int64_t begin, int64_t end) {
                for (int64_t panel = begin; panel < end; ++panel) pack<Kind>(source, panel);
            });
        });
    }

    int64_t depth() const { return depth_; }
    int64_t columns() const { return columns_; }
    Format format() const { return format_; }
    int64_t panels() const { return panels_; }

    template <class Kind>
    const typename Kind::Weight* panel(int64_t number) const {
        return std::get<Aligned<typename Kind::Weight>>(buffers_).data() + number * panel_size_;
    }

private:
    int64_t depth_, columns_, panels_, panel_size_;
    Format format_;
    Buffers buffers_;

    // In runs of columns that lie together in a panel; what lies together in the source is read together.
    template <class Kind>
    void pack(Matrix source, int64_t number) {
        constexpr int64_t RUN = 16, DEPTH = 32, NEAR = Kind::NEIGHBOURS;
        using Weight = typename Kind::Weight;
        Weight* panel = std::get<Aligned<Weight>>(buffers_).data() + number * panel_size_;
        Weight square[DEPTH][RUN] = {};
        for (int64_t column = 0; column < Kind::COLUMNS; column += RUN) {
            const int64_t first = number * Kind::COLUMNS + column;
            const int64_t count = std::clamp<int64_t>(columns_ - first, 0, RUN);
            if (count < RUN) std::fill(square[0], square[DEPTH], Weight{});
            const float* from = source.from + first * source.column_stride;
            for (int64_t top = 0; top < padded<Kind>(depth_); top += DEPTH) {
                const int64_t depth = std::min(DEPTH, depth_ - top);
                if (source.column_stride == 1) {
                    for (int64_t k = 0; k < depth; ++k) {
                        const float* row = from + (top + k) * source.row_stride;
                        for (int64_t n = 0; n < count; ++n) square[k][n] = Kind::weight(row[n]);
                    }
                } else {
                    Weight turned[RUN][DEPTH];
                    for (int64_t n = 0; n < count; ++n) {
                        const float* line = from + n * source.column_stride + top;
                        for (int64_t k = 0; k < depth; ++k) turned[n][k] = Kind::weight(line[k]);
                    }
                    for (int64_t k = 0; k < depth; ++k) {
                        for (int64_t n = 0; n < count; ++n) square[k][n] = turned[n][k];
                    }
                }
                const int64_t filled = padded<Kind>(depth);
                std::fill(square[depth], square[filled], Weight{});
                for (int64_t k = 0; k < filled; k += NEAR) {
                    Weight* to = panel + Kind::offset(top + k, column);
                    for (int64_t n = 0; n < RUN; ++n) {
                        for (int64_t near = 0; near < NEAR; ++near) to[n * NEAR + near] = square[k + near][n];
                    }
                }
            }
        }
    }
};

// From one taken row to the next: an odd number of cache lines, or rows at a power of two would share places in the cache.
template <class Kind>
int64_t taken_stride(int64_t depth) {
    constexpr int64_t LINE = 64 / sizeof(typename Kind::Factor);
    return ((padded<Kind>(depth) + LINE - 1) / LINE | 1) * LINE;
}

// Rows of A (…, K), rounded unless they are so already, one after the other, each filled up with zeros.
template <class Kind, class Number>
void take_rows(MatrixOf<Number> a, int64_t count, int64_t depth, typename Kind::Factor* to) {
    using Factor = typename Kind::Factor;
    const int64_t length = padded<Kind>(depth), stride = taken_stride<Kind>(depth);
    if (a.column_stride == 1) {
        for (int64_t row = 0; row < count; ++row) {
            for (int64_t k = 0; k < depth; ++k) to[row * stride + k] = Kind::factor(a.from[row * a.row_stride + k]);
            std::fill(to + row * stride + depth, to + row * stride + length, Factor{});
        }
        return;
    }
    // Turned over block by block in the cache. A block is wide, since its lines are far apart in memory.
    constexpr int64_t ROWS = 128, DEPTH = 32, NEAR = Kind::NEIGHBOURS;
    struct Neighbours {
        Factor at[NEAR];
    };
    Neighbours block[DEPTH / NEAR][ROWS];
    const Number zeros[ROWS] = {};
    for (int64_t top = 0; top < count; top += ROWS) {
        const int64_t rows = std::min(ROWS, count - top);
        for (int64_t left = 0; left < length; left += DEPTH) {
            const int64_t columns = std::min(DEPTH, length - left);
            for (int64_t k = 0; k < columns; k += NEAR) {
                const Number* lines[NEAR];
                for (int64_t near = 0; near < NEAR; ++near) {
                    const int64_t column = left + k + near;
                    lines[near] = column < depth ? a.from + top + column * a.column_stride : zeros;
                }
                for (int64_t row = 0; row < rows; ++row) {
                    for (int64_t near = 0; near < NEAR; ++near) {
                        block[k / NEAR][row].at[near] = Kind::factor(lines[near][row]);
                    }
                }
            }
            for (int64_t row = 0; row < rows; ++row) {
                Factor* start = to + (top + row) * stride + left;
                for (int64_t k = 0; k < columns; k += NEAR) {
                    std::memcpy(start + k, block[k / NEAR][row].at, sizeof(Neighbours));
                }
            }
        }
    }
}

}  // namespace prpn
