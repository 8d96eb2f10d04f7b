// AMX on processors that have none: an instruction that the processor does not know raises SIGILL, and the handler does
// by hand what the instruction would have done, as the processor's manual defines it, and steps over it.
//
//     C4  R̄X̄B̄mmmmm  Wv̄v̄v̄v̄Lpp  opcode  mod reg rm  [SIB]  [displacement]        mmmmm = 2, W = L = 0
//
//     pp  opcode  mod
//     -   49      memory     ldtilecfg    reg = 0
//     -   49      register   tilerelease
//     F2  49      register   tilezero     tile = reg
//     F2  4B      memory     tileloadd    tile = reg, rows at base + row · index
//     F3  4B      memory     tilestored   the same
//     F3  5C      register   tdpbf16ps    sums = reg, left = rm, right = v
#include <ucontext.h>

#include <csignal>
#include <cstdint>
#include <cstring>

namespace {

enum Prefix { NONE = 0, F3 = 2, F2 = 3 };

struct Tile {
    uint8_t rows[16][64];
};
struct State {
    Tile tiles[8];
    uint8_t heights[8];
    uint16_t widths[8];  // in bytes
    bool configured;
};
thread_local State state;
long emulated = 0;

// Registers in the order of their numbers in instructions.
constexpr int REGISTERS[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                               REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

float widened(const uint8_t* from) {
    uint16_t half;
    std::memcpy(&half, from, 2);
    const uint32_t bits = uint32_t(half) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

void configure(const uint8_t* from) {
    state = {};
    state.configured = from[0] == 1;
    for (int tile = 0; tile < 8; ++tile) {
        std::memcpy(&state.widths[tile], from + 16 + 2 * tile, 2);
        state.heights[tile] = from[48 + tile];
        if (state.widths[tile] > 64 || state.heights[tile] > 16) state.configured = false;
    }
}

void multiply(int sums, int left, int right) {
    for (int row = 0; row < state.heights[sums]; ++row) {
        for (int pair = 0; pair < state.widths[left] / 4; ++pair) {
            for (int column = 0; column < state.widths[sums] / 4; ++column) {
                float sum;
                std::memcpy(&sum, state.tiles[sums].rows[row] + 4 * column, 4);
                for (int part = 0; part < 2; ++part) {
                    sum += widened(state.tiles[left].rows[row] + 4 * pair + 2 * part) *
                           widened(state.tiles[right].rows[pair] + 4 * column + 2 * part);
                }
                std::memcpy(state.tiles[sums].rows[row] + 4 * column, &sum, 4);
            }
        }
    }
}

// Whether the instruction was one of the six; then its length is where the next one begins.
bool emulate(const uint8_t* code, const greg_t* registers, int64_t& length) {
    if (code[0] != 0xC4 || (code[1] & 31) != 2 || (code[2] & 0x84) != 0) return false;
    const int prefix = code[2] & 3, opcode = code[3], third = ~code[2] >> 3 & 15;
    const int mode = code[4] >> 6, reg = code[4] >> 3 & 7, rm = code[4] & 7;
    length = 5;
    if (mode == 3) {
        if (opcode == 0x49 && prefix == NONE) return state = {}, true;
        if (!state.configured) return false;
        if (opcode == 0x49 && prefix == F2) return state.tiles[reg] = {}, true;
        if (opcode == 0x5C && prefix == F3) return multiply(reg, rm, third), true;
        return false;
    }
    const int extend_index = ~code[1] >> 6 & 1, extend_base = ~code[1] >> 5 & 1;
    int base = rm;
    int64_t stride = 0;
    if (rm == 4) {
        const int sib = code[length++], index = (sib >> 3 & 7) + 8 * extend_index;
        base = sib & 7;
        if (index != 4) stride = int64_t(registers[REGISTERS[index]]) << (sib >> 6);
    }
    int64_t displacement = 0;
    if (mode == 1) displacement = int8_t(code[length]);
    if (mode == 0 && base == 5) return false;  // relative to the code: the core never addresses a tile so
    if (mode == 2) {
        int32_t wide;
        std::memcpy(&wide, code + length, 4);
        displacement = wide;
    }
    length += mode == 1 ? 1 : mode == 2 ? 4 : 0;
    auto* at = reinterpret_cast<uint8_t*>(registers[REGISTERS[base + 8 * extend_base]] + displacement);
    if (opcode == 0x49 && prefix == NONE && reg == 0) return configure(at), true;
    if (opcode != 0x4B || !state.configured || rm != 4) return false;
    Tile& tile = state.tiles[reg];
    if (prefix == F2) tile = {};
    for (int row = 0; row < state.heights[reg]; ++row) {
        if (prefix == F2) std::memcpy(tile.rows[row], at + row * stride, state.widths[reg]);
        else if (prefix == F3) std::memcpy(at + row * stride, tile.rows[row], state.widths[reg]);
        else return false;
    }
    return true;
}

void on_illegal_instruction(int, siginfo_t*, void* context) {
    greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    int64_t length = 0;
    if (emulate(reinterpret_cast<const uint8_t*>(registers[REG_RIP]), registers, length)) {
        registers[REG_RIP] += length;
        __atomic_add_fetch(&emulated, 1, __ATOMIC_RELAXED);
    } else {
        std::signal(SIGILL, SIG_DFL);  // the instruction runs once more, and ends the process
    }
}

}  // namespace

extern "C" int install() {
    struct sigaction action = {};
    action.sa_sigaction = on_illegal_instruction;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGILL, &action, nullptr);
}

extern "C" long instructions_emulated() { return __atomic_load_n(&emulated, __ATOMIC_RELAXED); }
