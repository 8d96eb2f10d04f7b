// Work shared by the threads of OpenMP, which are PyTorch's own where it is loaded: two pools would fight for cores.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace prpn {

// Calls work(begin, end) for `threads` nearly equal parts of 0 … count − 1, each in a thread of its own; a part begins
// at a multiple of `grain`.
template <class Work>
void parallel(int64_t count, int64_t threads, int64_t grain, const Work& work) {
    const int64_t grains = (count + grain - 1) / grain;
    threads = std::max<int64_t>(1, std::min(threads, grains));
    const auto begin = [&](int64_t part) { return std::min(count, part * grains / threads * grain); };
    if (threads == 1) return work(0, count);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int64_t part = 0; part < threads; ++part) work(begin(part), begin(part + 1));
}

// Blocks of at most `most` of `count` things, as many for each thread where there are enough.
inline int64_t even_blocks(int64_t count, int64_t most, int64_t threads) {
    const int64_t rounds = (count + most * threads - 1) / (most * threads);
    return std::min(rounds * threads, count);
}

// The half-open share of 0 … count − 1 that belongs to one part of several.
struct Share {
    Share(int64_t begin, int64_t end) : begin(begin), end(end) {}
    Share(int64_t count, int64_t part, int64_t parts) : Share(part * count / parts, (part + 1) * count / parts) {}
    const int64_t begin, end;
};

// Calls work(part, parts) in each of `threads` threads, which may meet at `wait_for_all`.
template <class Work>
void team(int64_t threads, const Work& work) {
#pragma omp parallel num_threads(int(std::max<int64_t>(1, threads)))
    work(int64_t(omp_get_thread_num()), int64_t(omp_get_num_threads()));
}

inline void wait_for_all() {
#pragma omp barrier
}

}  // namespace prpn
