// The packed product by itself, in each format: for comparison with other products and for tests.
#include "product.h"

#include "api.h"

using namespace prpn;

// C (rows, columns) += A (rows, depth) · Wᵀ, W (columns, depth) as linear maps have it.
PRPN_API void prpn_product(const float* a, int64_t rows, const float* w, int64_t depth, int64_t columns, int32_t format,
                           float* c, int64_t threads) {
    const Packed packed(w, depth, columns, 1, depth, Format(format), threads);
    parallel(rows, threads, 1, [&](int64_t begin, int64_t end) {
        ProductScratch scratch;
        product(a + begin * depth, depth, end - begin, packed, c + begin * columns, columns, scratch);
    });
}
