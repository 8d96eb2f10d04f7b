// Arrays that begin at a cache line, since a vector of 64 bytes that lies across two lines is read twice; what is not set
// when they grow is not set to zero either.
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
    template <class U>
    void construct(U* at) {
        ::new (static_cast<void*>(at)) U;
    }
    void deallocate(T* at, size_t) { ::operator delete(at, LINE); }

    bool operator==(const LineAllocator&) const { return true; }
    bool operator!=(const LineAllocator&) const { return false; }
};

template <class T>
using Aligned = std::vector<T, LineAllocator<T>>;

}  // namespace prpn
