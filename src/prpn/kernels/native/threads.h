// Work shared by the threads of OpenMP, which are PyTorch's own where it is loaded: two pools would fight for cores.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "failure.h"

namespace prpn {

// Calls work(begin, end) for `threads` nearly equal parts of 0 … count − 1, each in a thread of its own; a part begins
// at a multiple of `grain`.
template <class Work>
void parallel(int64_t count, int64_t threads, int64_t grain, const Work& work) {
    const int64_t grains = (count + grain - 1) / grain;
    threads = std::max<int64_t>(1, std::min(threads, grains));
    const auto begin = [&](int64_t part) { return std::min(count, part * grains / threads * grain); };
    if (threads == 1) return work(0, count);
    Failure failure;
#pragma omp parallel for num_threads(int(threads)) schedule(static, 1)
    for (int64_t part = 0; part < threads; ++part) failure.caught([&] { work(begin(part), begin(part + 1)); });
    failure.pass_on();
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

// Where the threads of a team wait for each other. They are seldom late by much, so a thread turns for a moment before it lets
// others have its core, and for another before it sleeps, whatever OpenMP's own threads are told to do when they wait.
class Meeting {
public:
    void wait_for(int64_t all) {
        const int64_t number = number_.load(std::memory_order_relaxed);
        if (number == ABANDONED) throw Abandoned();
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == all) {
            arrived_.store(0, std::memory_order_relaxed);
            number_.store(number + 1, std::memory_order_release);
            return;
        }
        for (int64_t turns = 0; number_.load(std::memory_order_acquire) == number; ++turns) {
            if (turns < PATIENCE) __builtin_ia32_pause();
            else if (turns < 2 * PATIENCE) std::this_thread::yield();
            else std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        if (number_.load(std::memory_order_relaxed) == ABANDONED) throw Abandoned();
    }

    // One will not come any more: the others need not wait. No meeting can end at the same time, for it would take all.
    void abandon() { number_.store(ABANDONED, std::memory_order_release); }

private:
    struct Abandoned : std::exception {};
    static constexpr int64_t PATIENCE = 2000, ABANDONED = -1;

    alignas(64) std::atomic<int64_t> arrived_{0};
    alignas(64) std::atomic<int64_t> number_{0};  // of this meeting
};

// One of several threads that do something together.
struct Member {
    const int64_t part, parts;
    Meeting& meeting;

    void wait_for_all() const {
        if (parts > 1) meeting.wait_for(parts);
    }
};

// Calls work(member) in each of `threads` threads, which may wait for each other.
template <class Work>
void team(int64_t threads, const Work& work) {
    Meeting meeting;
    if (threads == 1) return work(Member{0, 1, meeting});
    Failure failure;
#pragma omp parallel num_threads(int(threads))
    {
        const Member member{int64_t(omp_get_thread_num()), int64_t(omp_get_num_threads()), meeting};
        if (!failure.caught([&] { work(member); })) meeting.abandon();
    }
    failure.pass_on();
}

}  // namespace prpn
