// What becomes of an error in one of several threads.
#pragma once

#include <exception>
#include <mutex>

namespace prpn {

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
