// SPDX-License-Identifier: Apache-2.0
// Binomial trees for the control of a run: broadcast, and an all-gather of small blocks.
#include <algorithm>

#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {
namespace {

// Appends a broadcast of `range` from `root`: with v = (rank - root) mod k, v receives from v without its lowest set
// bit, then sends to v + 2^i for every lower bit i. Its first step waits for `ready`.
void add_broadcast(std::vector<Step>& steps, int rank, int ranks, int root, ElemRange range, std::int64_t ready) {
  const int v = (rank - root + ranks) % ranks;
  const auto real = [&](int relative) { return (relative + root) % ranks; };
  int bit = 1;
  while (bit < ranks && (v & bit) == 0) bit <<= 1;
  if (v != 0) {
    steps.push_back({.kind = StepKind::recv, .peer = real(v - bit), .range = range, .after = {ready, -1}});
    ready = static_cast<std::int64_t>(steps.size()) - 1;
  }
  for (bit >>= 1; bit > 0; bit >>= 1)
    if (v + bit < ranks)
      steps.push_back({.kind = StepKind::send, .peer = real(v + bit), .range = range, .after = {ready, -1}});
}

}  // namespace

std::shared_ptr<const Plan> make_broadcast(int rank, int ranks, int root, std::int64_t elems) {
  std::vector<Step> steps;
  if (elems > 0) add_broadcast(steps, rank, ranks, root, {0, elems}, -1);
  return std::make_shared<ListedPlan>("broadcast", std::move(steps));
}

std::shared_ptr<const Plan> make_allgather(int rank, int ranks, std::int64_t block_elems) {
  std::vector<Step> steps;
  if (block_elems == 0 || ranks == 1) return std::make_shared<ListedPlan>("allgather", std::move(steps));
  // After round i, a rank whose lower i+1 bits are 0 holds the blocks [rank, rank + 2^(i+1)). The receives write to
  // different blocks; the send up waits for the last of them, which the executor starts in order.
  std::int64_t last = -1;
  for (int bit = 1; bit < ranks; bit <<= 1) {
    const auto blocks = [&](int from) {
      return ElemRange{from * block_elems, std::min(from + bit, ranks) * block_elems};
    };
    if ((rank & bit) != 0) {
      steps.push_back({.kind = StepKind::send, .peer = rank - bit, .range = blocks(rank), .after = {last, -1}});
      last = static_cast<std::int64_t>(steps.size()) - 1;
      break;
    }
    if (rank + bit < ranks) {
      steps.push_back({.kind = StepKind::recv, .peer = rank + bit, .range = blocks(rank + bit), .after = {last, -1}});
      last = static_cast<std::int64_t>(steps.size()) - 1;
    }
  }
  add_broadcast(steps, rank, ranks, 0, {0, ranks * block_elems}, last);
  return std::make_shared<ListedPlan>("allgather", std::move(steps));
}

}  // namespace echelon::inline comm
