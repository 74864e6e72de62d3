// Every rank owns a part of the buffer. All send each part straight to its owner, who sums them in the order of ranks
// and sends the sum straight to all: 2 links deep, 2(k-1)/k of the buffer a rank, in 2(k-1) messages.
//
// Slots: r is what goes to rank r, later rank r's sum; k + r what came from rank r; 2k this rank's sum. So every value
// is written down exactly twice: by whom it is a term of the sum, and by whom it is the sum.
#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {

std::shared_ptr<const Plan> make_direct_allreduce(const AllreduceRequest& request) {
  const int k = request.ranks, me = request.rank;
  std::vector<Step> steps;
  if (k == 1 || request.elems == 0) return std::make_shared<ListedPlan>("direct", std::move(steps));
  const auto add = [&](const Step& step) {
    steps.push_back(step);
    return static_cast<std::int64_t>(steps.size()) - 1;
  };
  const auto part = [&](int r) { return even_part(request.elems, k, r); };
  const ElemRange mine = part(me);

  std::vector<std::int64_t> came(static_cast<std::size_t>(k), -1), sent(static_cast<std::size_t>(k), -1);
  const std::int64_t own =
      mine.empty() ? -1 : add({.kind = StepKind::copy, .range = mine, .slot = me, .to_slot = true});
  came[static_cast<std::size_t>(me)] = own;
  for (int d = 1; d < k; ++d) {
    const int from = (me - d + k) % k, to = (me + d) % k;
    if (!mine.empty())
      came[static_cast<std::size_t>(from)] =
          add({.kind = StepKind::recv, .peer = from, .range = mine, .slot = k + from});
    if (part(to).empty()) continue;
    const std::int64_t written = add({.kind = StepKind::copy, .range = part(to), .slot = to, .to_slot = true});
    sent[static_cast<std::size_t>(to)] =
        add({.kind = StepKind::send, .peer = to, .range = part(to), .slot = to, .after = {written, -1}});
  }
  std::int64_t summed = -1;
  for (int r = 0; r < k && !mine.empty(); ++r)
    summed = add({.kind = r == 0 ? StepKind::copy : StepKind::reduce,
                  .range = mine,
                  .slot = r == me ? me : k + r,
                  .after = {came[static_cast<std::size_t>(r)], summed}});
  if (!mine.empty())
    summed = add(
        {.kind = StepKind::copy, .range = mine, .slot = 2 * k, .to_slot = true, .sum = true, .after = {summed, -1}});
  for (int d = 1; d < k; ++d) {
    const int from = (me - d + k) % k, to = (me + d) % k;
    if (!part(from).empty()) {
      const std::int64_t sum = add({.kind = StepKind::recv,
                                    .peer = from,
                                    .range = part(from),
                                    .slot = from,
                                    .after = {sent[static_cast<std::size_t>(from)], -1}});
      add({.kind = StepKind::copy, .range = part(from), .slot = from, .after = {sum, -1}});
    }
    if (!mine.empty()) add({.kind = StepKind::send, .peer = to, .range = mine, .slot = 2 * k, .after = {summed, -1}});
  }
  return std::make_shared<ListedPlan>("direct", std::move(steps), 2 * k + 1, part(0).elems());
}

}  // namespace echelon::inline comm
