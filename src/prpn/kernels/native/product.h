// Products with a matrix W that is packed once (packing.h): C = start + A · W, where C may start from itself.
//
// A panel stays in the cache while it meets some rows, and while the one before it is worked on; a tile of C stays in
// registers while K is run through, which is done in stages where K is large. In bf16 both factors are rounded to the 8
// leading bits of their mantissa and the sums are fp32: in AMX tiles where the processor has them, else two at a time
// (bf16.h).
//
// `Factors` are rows of A. For few of them and a W that is used again and again, threads share one: each takes rows of its
// own, and once all are there meets panels of its own, whose weights stay in its cache from one call to the next. `multiply`
// is for two matrices that meet once.
#pragma once

#include <array>
#include <utility>

#include "packing.h"

namespace prpn {

// As many rows at once as leave registers for their sums: 24 of 32 with AVX-512, 12 of 16 with AVX2.
constexpr int64_t MOST_ROWS = WIDTH == 16 ? 12 : 6;

// Rows of A that meet a panel before the next one does, and rows of a panel that do so at a time: together they fill half
// of a cache of 1 MiB.
constexpr int64_t HEIGHT = 96, STAGE = 1280;

// What will be needed next: `step` numbers of it are fetched for each row of a panel.
template <class Weight>
struct Ahead {
    const Weight* from;
    int64_t step;
};

// C (ROWS, columns) = start + A (ROWS, K) · panel, K being `length` times the numbers that are taken together. Of a panel with
// few columns only the first of its two VECTORS is looked at.
template <class Kind, int64_t VECTORS, int64_t ROWS>
void meet_panel(const typename Kind::Factor* a, int64_t a_stride, const typename Kind::Weight* panel, int64_t length,
                Ahead<typename Kind::Weight> ahead, float* c, int64_t c_stride, int64_t columns, Start start) {
    constexpr int64_t TOGETHER = Kind::TOGETHER;
    Vector sums[ROWS][VECTORS] = {};
    for (int64_t k = 0; k < length; ++k) {
        __builtin_prefetch(ahead.from + k * ahead.step, 0, 2);
        typename Kind::Weights weights[VECTORS];
#pragma GCC unroll 2
        for (int64_t i = 0; i < VECTORS; ++i) weights[i] = Kind::load(panel + (k * PANEL + i * WIDTH) * TOGETHER);
#pragma GCC unroll 12
        for (int64_t row = 0; row < ROWS; ++row) {
            const auto factor = Kind::splat(a + row * a_stride + k * TOGETHER);
#pragma GCC unroll 2
            for (int64_t i = 0; i < VECTORS; ++i) sums[row][i] = Kind::add(sums[row][i], factor, weights[i]);
        }
    }
    const auto put = [&](int64_t row, int64_t column, Vector sum) {
        const int64_t count = std::min(WIDTH, columns - column);
        if (count <= 0) return;
        const float* before = start.at(row, column).from;
        store(c + row * c_stride + column, before ? load(before, count) + sum : sum, count);
    };
#pragma GCC unroll 12
    for (int64_t row = 0; row < ROWS; ++row) {
        for (int64_t i = 0; i < VECTORS; ++i) put(row, i * WIDTH, sums[row][i]);
    }
}

// The function above for each number of rows that it may be given.
template <class Kind, int64_t VECTORS, size_t... LESS_ONE>
constexpr auto by_rows(std::index_sequence<LESS_ONE...>) {
    return std::array{&meet_panel<Kind, VECTORS, int64_t(LESS_ONE) + 1>...};
}

// C (rows, N) = start + A (rows, K) · W for the columns of some panels, the rows of A as `take_rows` leaves them.
template <class Kind>
void product_in_panels(const typename Kind::Factor* a, int64_t a_stride, int64_t rows, const Packed& w, Share panels,
                       float* c, int64_t c_stride, Start start) {
    constexpr auto whole = by_rows<Kind, 2>(std::make_index_sequence<MOST_ROWS>());
    constexpr auto half = by_rows<Kind, 1>(std::make_index_sequence<MOST_ROWS>());
    constexpr int64_t TOGETHER = Kind::TOGETHER;
    const int64_t length = padded<Kind>(w.depth()) / TOGETHER;
    const int64_t blocks = (rows + MOST_ROWS - 1) / MOST_ROWS,
                  stages = std::max<int64_t>(1, (length + STAGE - 1) / STAGE);
    const int64_t step = PANEL / blocks * TOGETHER;
    for (int64_t stage = 0; stage < stages; ++stage) {
        const int64_t top = stage * length / stages, part = (stage + 1) * length / stages - top;
        for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
            const int64_t first = panel * PANEL, columns = std::min(PANEL, w.columns() - first);
            const auto& functions = columns > WIDTH ? whole : half;
            const int64_t after = panel + 1 < panels.end ? panel + 1 : panels.begin;
            const auto* weights = w.panel<Kind>(panel) + top * PANEL * TOGETHER;
            const auto* next = w.panel<Kind>(after) + top * PANEL * TOGETHER;
            for (int64_t block = 0; block < blocks; ++block) {
                const int64_t begin = block * rows / blocks, end = (block + 1) * rows / blocks;
                functions[end - begin - 1](a + begin * a_stride + top * TOGETHER, a_stride, weights, part,
                                           {next + block * part * step, step}, c + begin * c_stride + first, c_stride,
                                           columns, (stage > 0 ? Start{c, c_stride} : start).at(begin, first));
            }
        }
    }
}

template <>
inline void product_in_panels<Tiles>(const uint16_t* a, int64_t a_stride, int64_t rows, const Packed& w, Share panels,
                                     float* c, int64_t c_stride, Start start) {
    TileRegisters tiles;
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        const int64_t first = panel * Tiles::COLUMNS, columns = std::min(Tiles::COLUMNS, w.columns() - first);
        tiles.meet_panel(a, a_stride, rows, w.panel<Tiles>(panel), padded<Tiles>(w.depth()), c + first, c_stride,
                         columns, start.at(0, first));
    }
}

// Rows of A as a product with W wants them.
class Factors {
public:
    Factors(const Packed& w, int64_t rows) : w_(w) {
        with_kind(w.format(), [&](auto kind) {
            using Kind = decltype(kind);
            stride_ = taken_stride<Kind>(w.depth());
            std::get<Aligned<typename Kind::Factor>>(buffers_).resize(Tiles::padded_rows(rows) * stride_);
        });
    }

    void take(int64_t first, int64_t rows, Matrix a) {
        with_kind(w_.format(), [&](auto kind) {
            using Kind = decltype(kind);
            auto& factors = std::get<Aligned<typename Kind::Factor>>(buffers_);
            take_rows<Kind>(a, rows, w_.depth(), factors.data() + first * stride_);
        });
    }

    // C (rows, N) = start + A · W for the columns of some panels.
    void meet(int64_t rows, Share panels, float* c, int64_t c_stride, Start start) const {
        if (panels.begin == panels.end || rows == 0) return;
        with_kind(w_.format(), [&](auto kind) {
            using Kind = decltype(kind);
            const auto& factors = std::get<Aligned<typename Kind::Factor>>(buffers_);
            product_in_panels<Kind>(factors.data(), stride_, rows, w_, panels, c, c_stride, start);
        });
    }

    const Packed& weights() const { return w_; }

private:
    const Packed& w_;
    int64_t stride_;
    Buffers buffers_;
};

// C (rows, N) = start + A (rows, K) · W (K, N), by threads that share the rows or, where these are few, the columns.
inline void multiply(Matrix a, int64_t rows, Matrix w, int64_t depth, int64_t columns, Format format, float* c,
                     Start start, int64_t threads) {
    const Packed packed(w, depth, columns, format, threads);
    const bool by_rows = rows > HEIGHT * (threads - 1);
    const int64_t blocks = by_rows ? even_blocks(rows, HEIGHT, threads) : (rows + HEIGHT - 1) / HEIGHT;
    const auto some = [&](Share some_blocks, Share panels) {
        Factors factors(packed, std::min(rows, HEIGHT));
        for (int64_t block = some_blocks.begin; block < some_blocks.end; ++block) {
            const Share part(rows, block, blocks);
            const int64_t count = part.end - part.begin;
            factors.take(0, count, {a.from + part.begin * a.row_stride, a.row_stride, a.column_stride});
            factors.meet(count, panels, c + part.begin * columns, columns, start.at(part.begin, 0));
        }
    };
    const Share all_blocks(0, blocks), all_panels(0, packed.panels());
    if (by_rows) {
        parallel(blocks, threads, 1, [&](int64_t begin, int64_t end) { some({begin, end}, all_panels); });
    } else {
        parallel(packed.panels(), threads, 1, [&](int64_t begin, int64_t end) { some(all_blocks, {begin, end}); });
    }
}

}  // namespace prpn
