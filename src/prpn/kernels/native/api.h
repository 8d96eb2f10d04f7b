// What every exported function shares. Arrays are row-major, sizes are counts of elements, nothing is allocated for the
// caller, and nothing is kept between two calls unless a handle is returned.
//
// Each returns a status, and whatever else it finds through pointers. It checks what it is given before it begins
// (checks.h), and nothing that is thrown leaves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#define PRPN_API extern "C" __attribute__((visibility("default")))

namespace prpn {

// Mirrors kernels/native.py.
enum Status : int32_t { DONE = 0, NO_MEMORY = 1, WRONG_VALUE = 2, FAILED = 3, WRONG_INDEX = 4 };

// What was wrong when a function last failed in this thread.
inline char* message() {
    static thread_local char text[256] = "";
    return text;
}

inline Status failed(Status status, const char* what) {
    std::snprintf(message(), 256, "%s", what);
    return status;
}

// Runs the body of an exported function.
template <class Body>
int32_t guarded(const Body& body) noexcept {
    try {
        body();
        return DONE;
    } catch (const std::bad_alloc&) {
        return failed(NO_MEMORY, "not enough memory");
    } catch (const std::length_error&) {  // of a vector that would be larger than any
        return failed(NO_MEMORY, "not enough memory");
    } catch (const std::invalid_argument& error) {
        return failed(WRONG_VALUE, error.what());
    } catch (const std::out_of_range& error) {
        return failed(WRONG_INDEX, error.what());
    } catch (const std::exception& error) {
        return failed(FAILED, error.what());
    } catch (...) {
        return failed(FAILED, "unknown error");
    }
}

// How large a struct is that Python mirrors, and where its last field begins: both are compared.
template <class Struct>
int32_t layout_of(int64_t* size, int64_t* last, size_t offset) {
    return guarded([&] { *size = sizeof(Struct), *last = int64_t(offset); });
}

}  // namespace prpn
