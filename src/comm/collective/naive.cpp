// Every rank sends its whole buffer to every other and sums all of them in the order of ranks, so that all end with the
// same bits.
//
// One link deep, k(k-1) messages of the whole buffer, and k times the buffer as extra memory. What every other
// algorithm is measured against, and the fastest for a handful of bytes on few ranks.
#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {

std::shared_ptr<const Plan> make_naive_allreduce(const AllreduceRequest& request) {
  const int k = request.ranks, me = request.rank;
  const ElemRange all{0, request.elems};
  std::vector<Step> steps;
  if (k == 1 || all.empty()) return std::make_shared<ListedPlan>("naive", std::move(steps));

  // Slot r holds rank r's buffer; sending from the own slot leaves the buffer free for the sum.
  steps.push_back({.kind = StepKind::copy, .range = all, .slot = me, .to_slot = true});
  std::vector<std::int64_t> filled(static_cast<std::size_t>(k), 0);
  for (int d = 1; d < k; ++d) {
    const int from = (me - d + k) % k, to = (me + d) % k;
    filled[static_cast<std::size_t>(from)] = static_cast<std::int64_t>(steps.size());
    steps.push_back({.kind = StepKind::recv, .peer = from, .range = all, .slot = from});
    steps.push_back({.kind = StepKind::send, .peer = to, .range = all, .slot = me, .after = {0, -1}});
  }
  for (int r = 0; r < k; ++r) {
    const auto previous = r == 0 ? std::int64_t{-1} : static_cast<std::int64_t>(steps.size()) - 1;
    steps.push_back({.kind = r == 0 ? StepKind::copy : StepKind::reduce,
                     .range = all,
                     .slot = r,
                     .after = {filled[static_cast<std::size_t>(r)], previous}});
  }
  return std::make_shared<ListedPlan>("naive", std::move(steps), k, request.elems);
}

Price price_naive(const AllreduceRequest& request) {
  const std::int64_t k = request.ranks;
  return {.messages = k * (k - 1), .payload_elems = k * (k - 1) * request.elems, .steps = 1};
}

}  // namespace echelon::inline comm
