// The product of two matrices that lie in memory in any order, in each format.
#include "product.h"

#include "api.h"
#include "checks.h"

using namespace prpn;

namespace {

void check_matrix(const char* name, Matrix matrix, int64_t rows, int64_t columns) {
    check_array(name, matrix.from, {rows, columns});
    check_sizes({rows, matrix.row_stride});
    check_sizes({columns, matrix.column_stride});
    require(matrix.row_stride == 1 || matrix.column_stride == 1 || rows * columns <= 1,
            "a matrix lies neither by rows nor by columns");
}

}  // namespace

// C (rows, columns) = start + A (rows, depth) · W (depth, columns), C row by row, the others by their strides.
PRPN_API int32_t prpn_product(const float* a, int64_t a_row_stride, int64_t a_column_stride, const float* w,
                              int64_t w_row_stride, int64_t w_column_stride, int64_t rows, int64_t depth,
                              int64_t columns, int32_t format, float* c, const float* start, int64_t start_stride,
                              int64_t threads) {
    return guarded([&] {
        const Matrix left{a, a_row_stride, a_column_stride}, right{w, w_row_stride, w_column_stride};
        check_matrix("A", left, rows, depth);
        check_matrix("W", right, depth, columns);
        check_array("C", c, {rows, columns});
        check_sizes({rows, start_stride});
        check_kind("format", format, FORMATS);
        check_threads(threads);
        multiply(left, rows, right, depth, columns, available(Format(format)), c, {start, start_stride}, threads);
    });
}
