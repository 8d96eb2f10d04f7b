// What threads share out among each other, and what becomes of an error in one of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>

namespace prpn {

// `count` things in at most `threads` nearly equal parts, each beginning at a multiple of `grain`.
class Parts {
public:
    Parts(int64_t count, int64_t threads, int64_t grain)
        : count_(count),
          grain_(grain),
          grains_((count + grain - 1) / grain),
          number_(std::max<int64_t>(1, std::min(threads, grains_))) {}

    int64_t number() const { return number_; }
    int64_t begin(int64_t part) const { return std::min(count_, part * grains_ / number_ * grain_); }
    int64_t end(int64_t part) const { return begin(part + 1); }

private:
    int64_t count_, grain_, grains_, number_;
};

// Carries the first error of several threads to the one that waits for them.
class Failure {
public:
    // Whether the work was done; what it throws is kept.
    template <class Work>
    bool caught(const Work& work) noexcept {
        try {
            work();
            return true;
        } catch (...) {
            const std::lock_guard<std::mutex> lock(guard_);
            if (!first_) first_ = std::current_exception();
            return false;
        }
    }

    // Once all threads are done.
    void pass_on() const {
        if (first_) std::rethrow_exception(first_);
    }

private:
    std::mutex guard_;
    std::exception_ptr first_;
};

}  // namespace prpn
