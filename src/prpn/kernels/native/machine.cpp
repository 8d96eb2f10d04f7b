// What machine this is: whether this library's instructions exist on it, and who made it.

#include "api.h"

#if defined(__AMX_BF16__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

// Compiled for the same instructions as everything else, but so small that it uses none of them.
PRPN_API int32_t prpn_runs_here() {
    __builtin_cpu_init();
#if defined(__AVX512F__)
    bool vectors = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#else
    bool vectors = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
#if defined(__AVX512BF16__)
    vectors = vectors && __builtin_cpu_supports("avx512bf16");
#endif
#if defined(__AMX_BF16__)
    // The tiles' 8 KiB of state are given to a process that asks for them.
    constexpr long request_permission = 0x1023, tile_data = 18;
    uint32_t eax = 7, ebx = 0, ecx = 0, edx = 0;
    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    const bool has_tiles = (edx >> 22 & 1) && (edx >> 24 & 1);
    return vectors && has_tiles && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
    return vectors;
#endif
}

PRPN_API int32_t prpn_processor_is_intels() {
    __builtin_cpu_init();
    return __builtin_cpu_is("intel") != 0;
}
