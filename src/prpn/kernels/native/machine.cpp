// What machine this is: which instruction sets it runs, and who made it.
//
// Compiled by itself, for any x86-64 processor: whoever is asked whether an instruction exists must not use it. Features
// whose names older compilers do not know are read from the processor; the registers that they use are the operating
// system's to keep, and what is kept of them is asked by the features that compilers do know.
#include <cpuid.h>

#include <cstring>

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "api.h"
#include "checks.h"

namespace {

struct Registers {
    uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// What the processor says of itself: page 7 is about extended features.
Registers features(uint32_t subpage) {
    Registers r;
    if (__get_cpuid_max(0, nullptr) < 7) return r;
    __cpuid_count(7, 0, r.eax, r.ebx, r.ecx, r.edx);
    if (subpage > r.eax) return {};
    __cpuid_count(7, subpage, r.eax, r.ebx, r.ecx, r.edx);
    return r;
}

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

bool has_avx512bf16() { return has_avx512() && (features(1).eax >> 5 & 1); }

// The tiles' 8 KiB of state are given to a process that asks for them.
bool has_amx() {
#ifdef __linux__
    constexpr long arch_prctl = 158, request_permission = 0x1023, tile_data = 18;
    const uint32_t found = features(0).edx;
    return has_avx512() && (found >> 22 & 1) && (found >> 24 & 1) &&
           syscall(arch_prctl, request_permission, tile_data) == 0;
#else
    return false;
#endif
}

struct InstructionSet {
    const char* name;
    bool (*runs)();
};
constexpr InstructionSet KNOWN[] = {
    {"avx2", has_avx2}, {"avx512", has_avx512}, {"avx512bf16", has_avx512bf16}, {"amx", has_amx}};

}  // namespace

// Whether this machine runs the instruction set of a library, by its name.
PRPN_API int32_t prpn_machine_runs(const char* name, int32_t* answer) {
    return prpn::guarded([&] {
        prpn::require(name && answer, "no name, or no place for the answer");
        __builtin_cpu_init();
        for (const InstructionSet& known : KNOWN) {
            if (std::strcmp(known.name, name) == 0) return void(*answer = known.runs());
        }
        throw std::invalid_argument(std::string("unknown instruction set: ") + name);
    });
}

PRPN_API int32_t prpn_machine_is_intels(int32_t* answer) {
    return prpn::guarded([&] {
        prpn::require(answer, "no place for the answer");
        __builtin_cpu_init();
        *answer = __builtin_cpu_is("intel") != 0;
    });
}
