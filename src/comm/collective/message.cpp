// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/message.hpp"

namespace echelon::inline comm {
namespace {

std::shared_ptr<const Plan> one_step(const char* name, StepKind kind, int peer, std::int64_t elems) {
  std::vector<Step> steps;
  if (elems > 0) steps.push_back({.kind = kind, .peer = peer, .range = {0, elems}});
  return std::make_shared<ListedPlan>(name, std::move(steps));
}

}  // namespace

std::shared_ptr<const Plan> make_send_to(int peer, std::int64_t elems) {
  return one_step("message", StepKind::send, peer, elems);
}

std::shared_ptr<const Plan> make_receive_from(int peer, std::int64_t elems) {
  return one_step("message", StepKind::recv, peer, elems);
}

std::shared_ptr<const Plan> make_gather_to_first(int rank, const std::vector<ElemRange>& ranges) {
  if (rank > 0)
    return one_step("gather to the first", StepKind::send, 0, ranges[static_cast<std::size_t>(rank)].elems());
  std::vector<Step> steps;
  for (std::size_t from = 1; from < ranges.size(); ++from)
    if (!ranges[from].empty())
      steps.push_back({.kind = StepKind::recv, .peer = static_cast<int>(from), .range = ranges[from]});
  return std::make_shared<ListedPlan>("gather to the first", std::move(steps));
}

}  // namespace echelon::inline comm
