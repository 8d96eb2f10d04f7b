// Products with a matrix W that is packed once: C (+)= A · W.
//
//     A (rows, K) · W (K, N),    W packed as panels of PANEL columns, the last one filled up with zeros
//
// A panel stays in the cache while it meets some rows, and while the one before it is worked on; a tile of C stays in
// registers while K is run through, which is done in stages where K is large. In bf16 both factors are rounded to the 8
// leading bits of their mantissa and the sums are fp32: in AMX tiles where the processor has them, else two at a time
// (bf16.h).
//
//     fp32        panel[k][column]
//     bf16        panel[k / 2][column][k % 2], K filled up to a multiple of 2
//     bf16 tiles  panel[k / 32][half][k / 2 % 16][column % 16][k % 2], K filled up to a multiple of 32
//
// `product` is for few rows and a W that is used again and again: threads that share its panels keep their parts of it in
// their own caches from one call to the next. `multiply` is for two matrices that meet once.
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "aligned.h"
#include "bf16.h"
#include "threads.h"
#include "tiles.h"
#include "vector.h"

namespace prpn {

constexpr int64_t PANEL = 2 * WIDTH;

// As many rows at once as leave registers for their sums: 24 of 32 with AVX-512, 12 of 16 with AVX2.
constexpr int64_t MOST_ROWS = WIDTH == 16 ? 12 : 6;

// Rows of A that meet a panel before the next one does, and rows of a panel that do so at a time: together they fill half
// of a cache of 1 MiB.
constexpr int64_t HEIGHT = 96, STAGE = 1280;

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
struct Matrix {
    const float* from;
    int64_t row_stride, column_stride;
};

// A matrix W (K, N) ready to be multiplied with.
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

// Rows of A (…, K), rounded, one after the other, each filled up with zeros.
template <class Kind>
void take_rows(Matrix a, int64_t count, int64_t depth, typename Kind::Factor* to) {
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
    const float zeros[ROWS] = {};
    for (int64_t top = 0; top < count; top += ROWS) {
        const int64_t rows = std::min(ROWS, count - top);
        for (int64_t left = 0; left < length; left += DEPTH) {
            const int64_t columns = std::min(DEPTH, length - left);
            for (int64_t k = 0; k < columns; k += NEAR) {
                const float* lines[NEAR];
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
                Factor* from_here = to + (top + row) * stride + left;
                for (int64_t k = 0; k < columns; k += NEAR) {
                    std::memcpy(from_here + k, block[k / NEAR][row].at, sizeof(Neighbours));
                }
            }
        }
    }
}

// What will be needed next: `step` numbers of it are fetched for each row of a panel.
template <class Weight>
struct Ahead {
    const Weight* from;
    int64_t step;
};

// C (ROWS, columns ≤ PANEL) (+)= A (ROWS, K) · panel, K being `length` times the numbers that are taken together.
template <class Kind, int64_t ROWS>
void meet_panel(const typename Kind::Factor* a, int64_t a_stride, const typename Kind::Weight* panel, int64_t length,
                Ahead<typename Kind::Weight> ahead, float* c, int64_t c_stride, int64_t columns, bool add) {
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
    const auto put = [add](float* to, Vector sum, int64_t count) {
        if (count > 0) store(to, add ? load(to, count) + sum : sum, count);
    };
#pragma GCC unroll 12
    for (int64_t row = 0; row < ROWS; ++row) {
        put(c + row * c_stride, sums[row][0], std::min(WIDTH, columns));
        put(c + row * c_stride + WIDTH, sums[row][1], columns - WIDTH);
    }
}

// The function above for each number of rows that it may be given.
template <class Kind, size_t... LESS_ONE>
constexpr auto by_rows(std::index_sequence<LESS_ONE...>) {
    return std::array{&meet_panel<Kind, int64_t(LESS_ONE) + 1>...};
}

// C (rows, N) (+)= A (rows, K) · W for the columns of some panels, the rows of A as `take_rows` leaves them.
template <class Kind>
void product_in_panels(const typename Kind::Factor* a, int64_t a_stride, int64_t rows, const Packed& w, Share panels,
                       float* c, int64_t c_stride, bool add) {
    constexpr auto functions = by_rows<Kind>(std::make_index_sequence<MOST_ROWS>());
    constexpr int64_t TOGETHER = Kind::TOGETHER;
    const int64_t length = padded<Kind>(w.depth()) / TOGETHER;
    const int64_t blocks = (rows + MOST_ROWS - 1) / MOST_ROWS,
                  stages = std::max<int64_t>(1, (length + STAGE - 1) / STAGE);
    const int64_t step = PANEL / blocks * TOGETHER;
    for (int64_t stage = 0; stage < stages; ++stage) {
        const int64_t top = stage * length / stages, part = (stage + 1) * length / stages - top;
        for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
            const int64_t first = panel * PANEL, columns = std::min(PANEL, w.columns() - first);
            const int64_t after = panel + 1 < panels.end ? panel + 1 : panels.begin;
            const auto* weights = w.panel<Kind>(panel) + top * PANEL * TOGETHER;
            const auto* next = w.panel<Kind>(after) + top * PANEL * TOGETHER;
            for (int64_t block = 0; block < blocks; ++block) {
                const int64_t begin = block * rows / blocks, end = (block + 1) * rows / blocks;
                functions[end - begin - 1](a + begin * a_stride + top * TOGETHER, a_stride, weights, part,
                                           {next + block * part * step, step}, c + begin * c_stride + first, c_stride,
                                           columns, add || stage > 0);
            }
        }
    }
}

template <>
inline void product_in_panels<Tiles>(const uint16_t* a, int64_t a_stride, int64_t rows, const Packed& w, Share panels,
                                     float* c, int64_t c_stride, bool add) {
    TileRegisters tiles;
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const int64_t first = panel * Tiles::COLUMNS, columns = std::min(Tiles::COLUMNS, w.columns() - first);
        tiles.meet_panel(a, a_stride, rows, w.panel<Tiles>(panel), padded<Tiles>(w.depth()), c + first, c_stride,
                         columns, add);
    }
}

// C (rows, N) (+)= A (rows, K) · W for the columns of some panels. The buffers are kept by the caller: no memory is asked
// for in a loop.
inline void product(Matrix a, int64_t rows, const Packed& w, Share panels, float* c, int64_t c_stride, bool add,
                    Buffers& buffers) {
    if (panels.begin == panels.end || rows == 0) return;
    with_kind(w.format(), [&](auto kind) {
        using Kind = decltype(kind);
        const int64_t stride = taken_stride<Kind>(w.depth());
        auto& factors = std::get<Aligned<typename Kind::Factor>>(buffers);
        factors.resize(Tiles::padded_rows(rows) * stride);
        take_rows<Kind>(a, rows, w.depth(), factors.data());
        product_in_panels<Kind>(factors.data(), stride, rows, w, panels, c, c_stride, add);
    });
}

// C (rows, N) (+)= A (rows, K) · W (K, N), by threads that share the rows or, where these are few, the columns.
inline void multiply(Matrix a, int64_t rows, Matrix w, int64_t depth, int64_t columns, Format format, float* c,
                     bool add, int64_t threads) {
    const Packed packed(w, depth, columns, format, threads);
    const int64_t blocks = (rows + HEIGHT - 1) / HEIGHT;
    const auto some = [&](Share some_blocks, Share panels) {
        Buffers buffers;
        for (int64_t block = some_blocks.begin; block < some_blocks.end; ++block) {
            const Share part(rows, block, blocks);
            product({a.from + part.begin * a.row_stride, a.row_stride, a.column_stride}, part.end - part.begin, packed,
                    panels, c + part.begin * columns, columns, add, buffers);
        }
    };
    const Share all_blocks(0, blocks), all_panels(0, packed.panels());
    if (blocks >= threads) {
        parallel(blocks, threads, 1, [&](int64_t begin, int64_t end) { some({begin, end}, all_panels); });
    } else {
        parallel(packed.panels(), threads, 1, [&](int64_t begin, int64_t end) { some(all_blocks, {begin, end}); });
    }
}

}  // namespace prpn
