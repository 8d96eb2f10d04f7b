// Work shared by threads that are made for it and gone afterwards: nothing of them is left for a process that forks, or
// for one that does not use OpenMP.
#pragma once

#include <system_error>
#include <thread>
#include <vector>

#include "parts.h"

namespace prpn {

// Calls work(begin, end) for `threads` nearly equal parts of 0 … count − 1, each in a thread of its own, the first in the
// caller's; a part begins at a multiple of `grain`. Where no more threads are to be had, the caller does their parts.
template <class Work>
void share_out(int64_t count, int64_t threads, int64_t grain, const Work& work) {
    const Parts parts(count, threads, grain);
    if (parts.number() == 1) return work(0, count);
    Failure failure;
    const auto run = [&](int64_t part) { failure.caught([&] { work(parts.begin(part), parts.end(part)); }); };
    std::vector<std::thread> others;
    others.reserve(parts.number() - 1);
    int64_t part = parts.number() - 1;
    try {
        for (; part > 0; --part) others.emplace_back(run, part);
    } catch (const std::exception&) {  // of the system, or of memory
    }
    for (; part >= 0; --part) run(part);
    for (std::thread& other : others) other.join();
    failure.pass_on();
}

}  // namespace prpn
