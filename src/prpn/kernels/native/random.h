// Dropout masks that are never stored: whether element (row, column) is kept is a function of seed, row and column.
#pragma once

#include "vector.h"

namespace prpn {

class Dropout {
public:
    // rate 0 keeps everything.
    Dropout(uint64_t seed, float rate)
        : seed_(seed), threshold_(int32_t(double(rate) * (1 << 24))), scale_(1.0f / (1.0f - rate)) {}

    bool active() const { return threshold_ > 0; }

    // The mask of one row, from which `factors` gives WIDTH elements from a column on: 0 or 1 / (1 − rate).
    class Row {
    public:
        Row(uint64_t key, int32_t threshold, float scale)
            : first_(uint32_t(key)), second_(uint32_t(key >> 32)), threshold_(threshold), scale_(scale) {}

        Vector factors(int64_t column) const {
            typedef uint32_t Words __attribute__((vector_size(4 * WIDTH)));
            Words x;
            for (int64_t i = 0; i < WIDTH; ++i) x[i] = uint32_t(i);
            x = (x + uint32_t(column)) * 0x9e3779b9u + first_;
            x = (x ^ (x >> 16)) * 0x85ebca6bu;
            x = (x ^ (x >> 13)) + second_;
            x = x * 0xc2b2ae35u;
            x = (x ^ (x >> 16)) >> 8;
            Integers kept;
            std::memcpy(&kept, &x, sizeof kept);
            return select(kept >= threshold_, splat(scale_), Vector{});
        }

    private:
        uint32_t first_, second_;
        int32_t threshold_;
        float scale_;
    };

    Row row(int64_t number) const {  // splitmix64
        uint64_t x = seed_ + uint64_t(number + 1) * 0x9e3779b97f4a7c15u;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return Row(x ^ (x >> 31), threshold_, scale_);
    }

private:
    uint64_t seed_;
    int32_t threshold_;
    float scale_;
};

}  // namespace prpn
