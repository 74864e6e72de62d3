// SPDX-License-Identifier: Apache-2.0
// Every rank sends its whole buffer to every other and sums all of them in the order of ranks, so that all end with the
// same bits.
//
// One step deep, k(k-1) messages of the whole buffer, and k times the buffer as extra memory. The baseline of all other
// algorithms, and the fastest for a handful of bytes on few ranks.
//
// Slot r holds rank r's buffer; sending from this rank's slot leaves the buffer free for the sum:
//
//   copy   buffer into slot me
//   recv   rank me-d's buffer into its slot, send slot me to rank me+d after the copy, for d = 1 .. k-1 (mod k)
//   sum    slot 0 copied after the first copy, slots 1 .. k-1 added, each after it was filled and the previous one
#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {
namespace {

class NaivePlan final : public Plan {
 public:
  explicit NaivePlan(const AllreduceRequest& request)
      : k_(request.ranks), me_(request.rank), all_{0, request.ranks > 1 ? request.elems : 0} {}

  std::string_view name() const override { return "naive"; }
  std::int64_t steps() const override { return all_.empty() ? 0 : summed_from() + k_; }
  int slots() const override { return all_.empty() ? 0 : k_; }
  std::int64_t slot_elems() const override { return all_.elems(); }

  Step step(std::int64_t index) const override {
    if (index == 0) return {.kind = StepKind::copy, .range = all_, .slot = me_, .to_slot = true};
    if (index < summed_from()) {
      const int d = static_cast<int>((index + 1) / 2);
      if (index % 2 == 0)
        return {.kind = StepKind::send, .peer = (me_ + d) % k_, .range = all_, .slot = me_, .after = {0, -1}};
      const int from = (me_ - d + k_) % k_;
      return {.kind = StepKind::recv, .peer = from, .range = all_, .slot = from};
    }
    const int rank = static_cast<int>(index - summed_from());
    const int d = (me_ - rank + k_) % k_;
    const std::int64_t filled = d == 0 ? 0 : 2 * d - 1;
    return {.kind = rank == 0 ? StepKind::copy : StepKind::reduce,
            .range = all_,
            .slot = rank,
            .after = {filled, rank == 0 ? 0 : index - 1}};
  }

 private:
  std::int64_t summed_from() const { return 2 * std::int64_t{k_} - 1; }

  int k_, me_;
  ElemRange all_;
};

}  // namespace

std::shared_ptr<const Plan> make_naive_allreduce(const AllreduceRequest& request) {
  return std::make_shared<NaivePlan>(request);
}

Price price_naive(const AllreduceRequest& request) {
  const std::int64_t k = request.ranks;
  return {.messages = k * (k - 1), .payload_elems = k * (k - 1) * request.elems, .steps = 1};
}

}  // namespace echelon::inline comm
