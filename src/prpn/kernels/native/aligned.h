// Arrays that begin at a cache line: a vector of 64 bytes that lies across two lines is read twice.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace prpn {

template <class T>
struct LineAllocator {
    using value_type = T;
    static constexpr std::align_val_t LINE{64};

    LineAllocator() = default;
    template <class U>
    LineAllocator(const LineAllocator<U>&) {}

    T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), LINE)); }
    void deallocate(T* at, size_t) { ::operator delete(at, LINE); }

    bool operator==(const LineAllocator&) const { return true; }
    bool operator!=(const LineAllocator&) const { return false; }
};

template <class T>
using Aligned = std::vector<T, LineAllocator<T>>;

}  // namespace prpn
