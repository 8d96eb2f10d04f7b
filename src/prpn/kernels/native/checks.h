// Checks of what a caller hands over, before anything is read or written.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>

namespace prpn {

// More than a process can address: no size, nor any product of sizes, is larger, so that sums and small multiples of
// them do not overflow.
constexpr int64_t MOST = int64_t{1} << 47;
constexpr int64_t MOST_THREADS = 1 << 14;

inline void require(bool holds, const char* otherwise) {
    if (!holds) throw std::invalid_argument(otherwise);
}

// None is negative, and together, those that are 0 aside, they are not beyond what there can be.
inline void check_sizes(std::initializer_list<int64_t> sizes) {
    int64_t product = 1;
    for (const int64_t size : sizes) {
        require(size >= 0, "a size is negative");
        if (size == 0) continue;
        require(size <= MOST / product, "an array is larger than any memory");
        product *= size;
    }
}

// An array of these sizes is there unless one of them is 0.
inline void check_array(const char* name, const void* array, std::initializer_list<int64_t> sizes) {
    check_sizes(sizes);
    for (const int64_t size : sizes) {
        if (size == 0) return;
    }
    if (!array) throw std::invalid_argument(std::string("no array: ") + name);
}

inline void check_threads(int64_t threads) {
    require(threads >= 1 && threads <= MOST_THREADS, "the number of threads is not positive, or absurd");
}

inline void check_rate(float rate) { require(rate >= 0 && rate <= 1, "a rate is not between 0 and 1"); }

// One of `count` kinds that are numbered from 0.
inline void check_kind(const char* name, int32_t kind, int32_t count) {
    if (kind < 0 || kind >= count) {
        throw std::invalid_argument(std::string("unknown ") + name + ": " + std::to_string(kind));
    }
}

// All numbers are within 0 … count − 1.
template <class Number>
void check_indices(const char* name, const Number* numbers, int64_t size, int64_t count) {
    for (int64_t i = 0; i < size; ++i) {
        if (numbers[i] >= 0 && numbers[i] < count) continue;
        throw std::out_of_range(std::string(name) + " " + std::to_string(numbers[i]) + " at " + std::to_string(i) +
                                " is not one of " + std::to_string(count));
    }
}

}  // namespace prpn
