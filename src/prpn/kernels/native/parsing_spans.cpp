// Trees as arrays: the constituents of sentences whose scores stand one after the other.
//
//     sentence of n words ──> n − 1 spans, parents before children and left before right      (none where n < 2)
#include <vector>

#include "api.h"
#include "checks.h"
#include "parsing_trees.h"
#include "workers.h"

namespace prpn {
namespace {

// Sentences that a thread takes at a time.
constexpr int64_t SENTENCES = 64;

int64_t spans_of(int64_t words) { return std::max<int64_t>(0, words - 1); }

}  // namespace
}  // namespace prpn

// starts, stops (spans): counted from the first word of their sentence. `ends` (sentences): where each ends among the
// words.
PRPN_API int32_t prpn_parsing_spans(const float* scores, int64_t words, const int64_t* ends, int64_t sentences,
                                    int32_t builder, int32_t* starts, int32_t* stops, int64_t spans, int64_t threads) {
    using namespace prpn;
    return guarded([&] {
        check_array("scores", scores, {words});
        check_array("ends", ends, {sentences});
        check_array("starts", starts, {spans});
        check_array("stops", stops, {spans});
        check_kind("builder", builder, BUILDERS);
        check_threads(threads);
        std::vector<int64_t> first(sentences + 1);  // span of each sentence
        for (int64_t i = 0, before = 0; i < sentences; before = ends[i++]) {
            require(ends[i] >= before && ends[i] <= words, "a sentence ends where it cannot");
            first[i + 1] = first[i] + spans_of(ends[i] - before);
        }
        require(sentences ? ends[sentences - 1] == words : words == 0, "there are words after the last sentence");
        require(first[sentences] == spans, "there is not room for as many spans as there are");
        share_out((sentences + SENTENCES - 1) / SENTENCES, threads, [&](int64_t piece) {
            Constituents tree;
            for (int64_t i = piece * SENTENCES; i < std::min(sentences, (piece + 1) * SENTENCES); ++i) {
                const int64_t begin = i ? ends[i - 1] : 0, n = ends[i] - begin;
                tree.build(scores + begin, n, Builder{builder}, true);
                int64_t span = first[i];
                for (int64_t start = 0; start < n; ++start) {
                    for (int64_t k = 0; k < tree.opening[start]; ++k, ++span) {
                        starts[span] = int32_t(start);
                        stops[span] = int32_t(tree.ends[span - first[i]]);
                    }
                }
            }
        });
    });
}
