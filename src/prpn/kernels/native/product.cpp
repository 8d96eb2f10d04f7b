// The product of two matrices that lie in memory in any order, in each format.
#include "product.h"

#include "api.h"

using namespace prpn;

// C (rows, columns) = start + A (rows, depth) · W (depth, columns), C row by row, the others by their strides.
PRPN_API void prpn_product(const float* a, int64_t a_row_stride, int64_t a_column_stride, const float* w,
                           int64_t w_row_stride, int64_t w_column_stride, int64_t rows, int64_t depth, int64_t columns,
                           int32_t format, float* c, const float* start, int64_t start_stride, int64_t threads) {
    multiply({a, a_row_stride, a_column_stride}, rows, {w, w_row_stride, w_column_stride}, depth, columns,
             available(Format(format)), c, {start, start_stride}, threads);
}
