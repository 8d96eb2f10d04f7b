// Products of bf16 numbers in AMX tiles: 16 rows of 64 bytes. One instruction adds A (16, 32) · B (32, 16) to C.
//
// Where the compiler has no AMX the eight tiles are arrays and the instruction is three loops, as the manual of the
// processor defines it: slow, but it lets packing and indexing be tested on any machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "bf16.h"
#include "start.h"

namespace prpn {

struct Tiles {
    using Weight = uint16_t;
    using Factor = uint16_t;
    using WeightUnit = Pair;
    using FactorUnit = Pair;
    static constexpr int64_t COLUMNS = 32;   // of two tiles of C
    static constexpr int64_t HEIGHT = 32;    // rows of two tiles of C
    static constexpr int64_t TOGETHER = 32;  // what one instruction sums over
#if defined(__AMX_BF16__)
    static constexpr bool NATIVE = true;
#else
    static constexpr bool NATIVE = false;
#endif

    static int64_t padded_rows(int64_t rows) { return (rows + HEIGHT - 1) / HEIGHT * HEIGHT; }

    // Where element (k, column) of a panel lies: pairs along k are neighbours.
    static int64_t offset(int64_t k, int64_t column) {
        return (k / TOGETHER * 2 + column / 16) * 512 + k % TOGETHER / 2 * 32 + column % 16 * 2 + k % 2;
    }
};

class TileRegisters {
public:
    // C (rows, columns) = start + A (rows, depth) · panel, where depth is a multiple of TOGETHER and A has room for a multiple of
    // HEIGHT rows: what stands in those that do not exist is not used.
    void meet_panel(const uint16_t* a, int64_t a_stride, int64_t rows, const uint16_t* panel, int64_t depth, float* c,
                    int64_t c_stride, int64_t columns, Start start) {
        constexpr int64_t HEIGHT = Tiles::HEIGHT, DEPTH = Tiles::TOGETHER;
        alignas(64) float sums[HEIGHT * PANEL];
        for (int64_t first = 0; first < rows; first += HEIGHT) {
            zero<0>(), zero<1>(), zero<2>(), zero<3>();
            for (int64_t k = 0; k < depth; k += DEPTH) {
                load<4>(a + first * a_stride + k, a_stride * 2);
                load<5>(a + (first + 16) * a_stride + k, a_stride * 2);
                load<6>(panel + k / DEPTH * 1024, 64);
                load<7>(panel + k / DEPTH * 1024 + 512, 64);
                multiply<0, 4, 6>(), multiply<1, 4, 7>(), multiply<2, 5, 6>(), multiply<3, 5, 7>();
            }
            store<0>(sums), store<1>(sums + 16), store<2>(sums + 16 * PANEL), store<3>(sums + 16 * PANEL + 16);
            for (int64_t row = 0; row < std::min(HEIGHT, rows - first); ++row) {
                float* target = c + (first + row) * c_stride;
                const float* before = start.at(first + row, 0).from;
                for (int64_t n = 0; n < columns; ++n) target[n] = (before ? before[n] : 0) + sums[row * PANEL + n];
            }
        }
    }

#if defined(__AMX_BF16__)
    // Written as assembly: the compilers' own names want the number of a tile as a literal, not as a constant.
    TileRegisters() {
        alignas(64) uint8_t configuration[64] = {1};  // palette 1; rows and bytes a row of the eight tiles
        for (int tile = 0; tile < 8; ++tile) {
            configuration[16 + 2 * tile] = 64;
            configuration[48 + tile] = 16;
        }
        __asm__ volatile("ldtilecfg %0" : : "m"(configuration) : "memory");
    }
    ~TileRegisters() { __asm__ volatile("tilerelease" : : : "memory"); }

private:
    static constexpr int64_t PANEL = Tiles::COLUMNS;

    template <int TILE>
    void zero() {
        __asm__ volatile("tilezero %%tmm%c0" : : "i"(TILE));
    }
    template <int TILE>
    void load(const uint16_t* from, int64_t stride) {
        __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(TILE) : "memory");
    }
    template <int TILE>
    void store(float* to) {
        __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(PANEL * 4), "i"(TILE) : "memory");
    }
    template <int C, int A, int B>
    void multiply() {
        __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
    }
#else
private:
    static constexpr int64_t PANEL = Tiles::COLUMNS;

    uint8_t tiles_[8][16][64];

    template <int TILE>
    void zero() {
        std::memset(tiles_[TILE], 0, sizeof tiles_[TILE]);
    }
    template <int TILE>
    void load(const uint16_t* from, int64_t stride) {
        for (int row = 0; row < 16; ++row) {
            std::memcpy(tiles_[TILE][row], reinterpret_cast<const uint8_t*>(from) + row * stride, 64);
        }
    }
    template <int TILE>
    void store(float* to) {
        for (int row = 0; row < 16; ++row) std::memcpy(to + row * PANEL, tiles_[TILE][row], 64);
    }
    template <int C, int A, int B>
    void multiply() {
        for (int row = 0; row < 16; ++row) {
            float sums[16];
            uint16_t left[32], right[16][32];
            std::memcpy(sums, tiles_[C][row], 64);
            std::memcpy(left, tiles_[A][row], 64);
            std::memcpy(right, tiles_[B], 1024);
            for (int pair = 0; pair < 16; ++pair) {
                for (int column = 0; column < 16; ++column) {
                    for (int part = 0; part < 2; ++part) {
                        sums[column] += from_bf16(left[2 * pair + part]) * from_bf16(right[pair][2 * column + part]);
                    }
                }
            }
            std::memcpy(tiles_[C][row], sums, 64);
        }
    }
#endif
};

}  // namespace prpn
