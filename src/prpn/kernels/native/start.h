// What the result of a product starts from.
#pragma once

#include <cstdint>

namespace prpn {

// The row that is added to each row: of C itself, of another matrix, the same for all (stride 0), or none.
struct Start {
    const float* from;
    int64_t stride;

    Start at(int64_t row, int64_t column) const { return {from ? from + row * stride + column : nullptr, stride}; }
};

constexpr Start ZERO{nullptr, 0};

}  // namespace prpn
