// The packed product by itself, in each format: for comparison with other products and for tests.
#include "product.h"

#include "api.h"

using namespace prpn;

// C (rows, columns) += A (rows, depth) · Wᵀ, W (columns, depth) as linear maps have it.
PRPN_API void prpn_product(const float* a, int64_t rows, const float* w, int64_t depth, int64_t columns, int32_t format,
                           float* c, int64_t threads) {
    const Packed packed(w, depth, columns, 1, depth, Format(format), threads);
    team(threads, [&](int64_t part, int64_t parts) {
        ProductScratch scratch;
        product(a, depth, rows, packed, Share(packed.panels(), part, parts), c, columns, scratch);
    });
}
