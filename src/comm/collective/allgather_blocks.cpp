// SPDX-License-Identifier: Apache-2.0
// All-gather of blocks of different sizes around a ring: every rank passes on to its right neighbour what arrived from
// its left neighbour, so that each block travels over k-1 links and nothing is sent twice over one link.
//
// Round s of k-1: receive block me-s-1 from the left, send block me-s to the right, beginning with this rank's own.
#include <numeric>

#include "base/check.hpp"
#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {

std::shared_ptr<const Plan> make_allgather_blocks(int rank, const std::vector<std::int64_t>& block_elems) {
  const int k = static_cast<int>(block_elems.size());
  ECHELON_CHECK(rank >= 0 && rank < k, "rank {} of {}", rank, k);
  std::vector<std::int64_t> begin(block_elems.size() + 1, 0);
  std::partial_sum(block_elems.begin(), block_elems.end(), begin.begin() + 1);
  const auto block = [&](int owner) {
    const auto at = static_cast<std::size_t>((owner + k) % k);
    return ElemRange{begin[at], begin[at + 1]};
  };
  std::vector<Step> steps;
  std::int64_t here = -1;  // the step that received the block to be sent; -1: this rank's own block
  for (int s = 0; s + 1 < k; ++s) {
    const std::int64_t came = block(rank - s - 1).empty() ? -1 : static_cast<std::int64_t>(steps.size());
    if (came >= 0) steps.push_back({.kind = StepKind::recv, .peer = (rank - 1 + k) % k, .range = block(rank - s - 1)});
    if (!block(rank - s).empty())
      steps.push_back({.kind = StepKind::send, .peer = (rank + 1) % k, .range = block(rank - s), .after = {here, -1}});
    here = came;
  }
  return std::make_shared<ListedPlan>("allgather of blocks", std::move(steps));
}

}  // namespace echelon::inline comm
