// Work shared by threads that are made for it and gone afterwards: nothing of them is left for a process that forks, or
// for one that does not use OpenMP.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "failure.h"

namespace prpn {

// Calls work(piece) for pieces 0 … count − 1, which at most `threads` threads take one after the other: a thread that comes
// late, the cores being busy, finds less to do. The caller is one of them, and the only one where no other is to be had.
template <class Work>
void share_out(int64_t count, int64_t threads, const Work& work) {
    std::atomic<int64_t> next{0};
    Failure failure;
    const auto take = [&] {
        failure.caught([&] {
            for (int64_t piece = next++; piece < count; piece = next++) work(piece);
        });
    };
    std::vector<std::thread> others;
    threads = std::min(threads, count);
    if (threads > 1) others.reserve(threads - 1);
    try {
        for (int64_t i = 1; i < threads; ++i) others.emplace_back(take);
    } catch (const std::exception&) {  // of the system, or of memory
    }
    take();
    for (std::thread& other : others) other.join();
    failure.pass_on();
}

}  // namespace prpn
