// Work shared by a few threads that live as long as the call: nothing spins while PyTorch has the cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace prpn {

// Calls work(begin, end) for `threads` nearly equal parts of 0 … count − 1, each in a thread of its own; a part begins
// at a multiple of `grain`.
template <class Work>
void parallel(int64_t count, int64_t threads, int64_t grain, const Work& work) {
    const int64_t grains = (count + grain - 1) / grain;
    threads = std::max<int64_t>(1, std::min(threads, grains));
    std::vector<std::thread> helpers;
    helpers.reserve(threads - 1);
    const auto begin = [&](int64_t part) { return std::min(count, part * grains / threads * grain); };
    for (int64_t part = 1; part < threads; ++part) {
        helpers.emplace_back([&work, from = begin(part), to = begin(part + 1)] { work(from, to); });
    }
    work(begin(0), begin(1));
    for (std::thread& helper : helpers) helper.join();
}

}  // namespace prpn
