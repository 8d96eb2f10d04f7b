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
#include "threads.h"
#include "tiles.h"
#include "units.h"
#include "vector.h"

namespace prpn {

constexpr int64_t PANEL = 2 * WIDTH;

// Lines that are fetched ahead while a matrix is packed: of those that follow each other in steps, of those read along.
constexpr int64_t LINES_AHEAD = 32, SQUARES_AHEAD = 4;

enum class Format : int32_t { FP32 = 0, BF16 = 1, TILES = 2 };
constexpr int32_t FORMATS = 3;

// How a wish for fp32 or bf16 is met by this library.
inline Format available(Format wish) { return wish == Format::BF16 && Tiles::NATIVE ? Format::TILES : wish; }

// A way to multiply: types of factors and weights and the units (units.h) they form, how many of them along K are taken
// together, and where a unit of weights begins in a panel: runs of 16 columns lie beside each other.
struct Fp32 {
    using Weight = float;
    using Factor = float;
    using WeightUnit = Single;
    using FactorUnit = Single;
    using Weights = Vector;
    static constexpr int64_t TOGETHER = 1, COLUMNS = PANEL;

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

// Units of `count` numbers of line k, and of the lines after it if a unit takes several; lines from `depth` on are 0.
template <class Unit, class Number>
inline __attribute__((always_inline)) Units across(const Number* from, int64_t line_stride, int64_t k, int64_t depth,
                                                   int64_t count) {
    static constexpr Number ZEROS[WIDTH] = {};
    const Number* lines[Unit::NUMBERS];
    for (int64_t i = 0; i < Unit::NUMBERS; ++i) lines[i] = k + i < depth ? from + (k + i) * line_stride : ZEROS;
    return Unit::across(lines, count);
}

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

    // In runs of columns that lie together in a panel, by squares of units where the source lies by columns.
    template <class Kind>
    void pack(Matrix source, int64_t number) {
        using Unit = typename Kind::WeightUnit;
        auto* panel = std::get<Aligned<typename Kind::Weight>>(buffers_).data() + number * panel_size_;
        const int64_t length = padded<Kind>(depth_);
        const auto columns_from = [&](int64_t column) {
            return std::clamp<int64_t>(columns_ - number * Kind::COLUMNS - column, 0, WIDTH);
        };
        const float* from = source.from + number * Kind::COLUMNS * source.column_stride;
        if (source.column_stride == 1) {
            for (int64_t k = 0; k < length; k += Unit::NUMBERS) {
                for (int64_t column = 0; column < Kind::COLUMNS; column += WIDTH) {
                    for (int64_t i = 0; i < Unit::NUMBERS; ++i) {
                        __builtin_prefetch(from + column + (k + LINES_AHEAD + i) * source.row_stride);
                    }
                    const Units units = across<Unit>(from + column, source.row_stride, k, depth_, columns_from(column));
                    store_units(panel + Kind::offset(k, column), units);
                }
            }
            return;
        }
        for (int64_t column = 0; column < Kind::COLUMNS; column += WIDTH) {
            for (int64_t top = 0; top < length; top += WIDTH * Unit::NUMBERS) {
                Units square[WIDTH] = {};
                for (int64_t n = 0; n < columns_from(column); ++n) {
                    const float* line = from + (column + n) * source.column_stride + top;
                    for (int64_t i = 0; i < Unit::NUMBERS; ++i) {
                        __builtin_prefetch(line + (SQUARES_AHEAD * Unit::NUMBERS + i) * WIDTH);
                    }
                    square[n] = Unit::along(line, depth_ - top);
                }
                turn_over(square);
                const int64_t rows = std::min(WIDTH, (length - top) / Unit::NUMBERS);
                for (int64_t row = 0; row < rows; ++row) {
                    store_units(panel + Kind::offset(top + row * Unit::NUMBERS, column), square[row]);
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
    using Unit = typename Kind::FactorUnit;
    constexpr int64_t STEP = WIDTH * Unit::NUMBERS;
    const int64_t length = padded<Kind>(depth), stride = taken_stride<Kind>(depth);
    if constexpr (std::is_same_v<Number, float>) {
        if (a.column_stride == 1) {
            for (int64_t row = 0; row < count; ++row) {
                for (int64_t k = 0; k < length; k += STEP) {
                    store_units(to + row * stride + k, Unit::along(a.from + row * a.row_stride + k, depth - k));
                }
            }
            return;
        }
    }
    // Turned over in squares. Lines are far apart in memory, so that some length of each is read at once.
    constexpr int64_t SQUARES = 8;
    Units squares[SQUARES][WIDTH];
    for (int64_t top = 0; top < count; top += SQUARES * WIDTH) {
        const int64_t some = std::min(SQUARES, (count - top + WIDTH - 1) / WIDTH);
        for (int64_t left = 0; left < length; left += STEP) {
            for (int64_t k = 0; k < WIDTH; ++k) {
                const int64_t line = left + k * Unit::NUMBERS;
                for (int64_t i = 0; i < some; ++i) {
                    const Number* from = a.from + top + i * WIDTH;
                    for (int64_t j = 0; j < Unit::NUMBERS; ++j) {
                        __builtin_prefetch(from + (line + STEP + j) * a.column_stride);
                    }
                    const int64_t rows = std::min(WIDTH, count - top - i * WIDTH);
                    squares[i][k] = across<Unit>(from, a.column_stride, line, depth, rows);
                }
            }
            for (int64_t i = 0; i < some; ++i) {
                turn_over(squares[i]);
                const int64_t first = top + i * WIDTH;
                for (int64_t row = 0; row < std::min(WIDTH, count - first); ++row) {
                    store_units(to + (first + row) * stride + left, squares[i][row]);
                }
            }
        }
    }
}

}  // namespace prpn
