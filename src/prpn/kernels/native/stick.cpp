// Gates from factors, g_i = Π_{j ≥ i} α_j, and back, for rows of N slots, oldest first:
//
//     ∂α_k = g_{k+1} Σ_{i ≤ k} ∂g_i Π_{i ≤ j < k} α_j        the sum gathered from left to right, g_N = 1
#include "api.h"
#include "checks.h"
#include "threads.h"

using namespace prpn;

namespace {

constexpr int64_t GRAIN = 512;  // rows a thread takes at least

}  // namespace

PRPN_API int32_t prpn_stick_forward(const float* factors, int64_t rows, int64_t slots, float* gates, int64_t threads) {
    return guarded([&] {
        check_array("factors", factors, {rows, slots});
        check_array("gates", gates, {rows, slots});
        check_threads(threads);
        parallel(rows, threads, GRAIN, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
                float gate = 1;
                for (int64_t i = slots - 1; i >= 0; --i) gates[row * slots + i] = gate *= factors[row * slots + i];
            }
        });
    });
}

PRPN_API int32_t prpn_stick_backward(const float* factors, const float* gates, const float* d_gates, int64_t rows,
                                     int64_t slots, float* d_factors, int64_t threads) {
    return guarded([&] {
        check_array("factors", factors, {rows, slots});
        check_array("gates", gates, {rows, slots});
        check_array("d_gates", d_gates, {rows, slots});
        check_array("d_factors", d_factors, {rows, slots});
        check_threads(threads);
        parallel(rows, threads, GRAIN, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
                const int64_t first = row * slots, last = first + slots - 1;
                float gathered = 0;
                for (int64_t k = first; k <= last; ++k) {
                    gathered = d_gates[k] + (k > first ? factors[k - 1] * gathered : 0);
                    d_factors[k] = (k < last ? gates[k + 1] : 1) * gathered;
                }
            }
        });
    });
}
