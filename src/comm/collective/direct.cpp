// SPDX-License-Identifier: Apache-2.0
// Every rank owns a part of the buffer. All ranks send each part directly to its owner, who sums the parts in rank
// order and sends the sum directly to all: 2 steps deep, 2(k-1)/k of the buffer per rank, in 2(k-1) messages.
//
// Slots: r holds the part for rank r, later rank r's sum; k + r the part that came from rank r; 2k this rank's sum. So
// every value is encoded exactly twice: by the rank that has it as a term, and by the rank that computes the sum.
//
//   scatter   copy  this rank's part into its slot
//             recv  own part from rank me-d          d = 1 .. k-1 (mod k)
//             copy  rank me+d's part into its slot
//             send  it                               after the copy
//   sum       copy, reduce of this part's slots in rank order, each after its message came and the previous one,
//             the first after the copy of the own part
//             copy  the sum into slot 2k
//   gather    recv  rank me-d's sum into its slot    after the previous content was sent
//             copy  it into the buffer               after the recv
//             send  this rank's sum to rank me+d     after the sum was copied
//
// If there are fewer elements than ranks, the ranks from `owners_` on own empty parts, whose steps are left out.
#include <algorithm>

#include "comm/collective/algorithms.hpp"

namespace echelon::inline comm {
namespace {

class DirectPlan final : public Plan {
 public:
  explicit DirectPlan(const AllreduceRequest& request)
      : k_(request.ranks),
        me_(request.rank),
        elems_(request.elems),
        owners_(static_cast<int>(std::min<std::int64_t>(k_, elems_))),
        own_(me_ < owners_ ? 1 : 0),
        sum_from_(scatter_begin(k_)),
        gather_from_(sum_from_ + own_ * (k_ + 1)) {}

  std::string_view name() const override { return "direct"; }
  std::int64_t steps() const override { return empty() ? 0 : gather_begin(k_); }
  int slots() const override { return empty() ? 0 : 2 * k_ + 1; }
  std::int64_t slot_elems() const override { return part(0).elems(); }

  Step step(std::int64_t index) const override {
    if (index < own_) return {.kind = StepKind::copy, .range = part(me_), .slot = me_, .to_slot = true};
    if (index < sum_from_) return scatter(index);
    if (index < gather_from_) return sum(index);
    return gather(index);
  }

 private:
  bool empty() const { return k_ == 1 || elems_ == 0; }
  ElemRange part(int rank) const { return even_part(elems_, k_, rank); }
  int next(int d) const { return (me_ + d) % k_; }
  int before(int d) const { return (me_ - d + k_) % k_; }
  // Number of owners among the numbers below x, which continue beyond k.
  std::int64_t owners_below(std::int64_t x) const { return x / k_ * owners_ + std::min<std::int64_t>(x % k_, owners_); }
  // First step of round d of a phase.
  std::int64_t scatter_begin(int d) const {
    return own_ + own_ * (d - 1) + 2 * (owners_below(me_ + d) - owners_below(me_ + 1));
  }
  std::int64_t gather_begin(int d) const {
    return gather_from_ + own_ * (d - 1) + 2 * (owners_below(k_ + me_) - owners_below(k_ + me_ - (d - 1)));
  }
  // The last round of 1 .. k-1 that begins at `index` or before: O(log k).
  template <class Begin>
  int round_of(std::int64_t index, const Begin& begin) const {
    int least = 1, most = k_ - 1;
    while (least < most) {
      const int middle = (least + most + 1) / 2;
      if (begin(middle) <= index)
        least = middle;
      else
        most = middle - 1;
    }
    return least;
  }

  Step scatter(std::int64_t index) const {
    const int d = round_of(index, [this](int round) { return scatter_begin(round); });
    const std::int64_t which = index - scatter_begin(d) - own_;
    if (which < 0) return {.kind = StepKind::recv, .peer = before(d), .range = part(me_), .slot = k_ + before(d)};
    const int to = next(d);
    if (which == 0) return {.kind = StepKind::copy, .range = part(to), .slot = to, .to_slot = true};
    return {.kind = StepKind::send, .peer = to, .range = part(to), .slot = to, .after = {index - 1, -1}};
  }

  Step sum(std::int64_t index) const {
    const auto rank = static_cast<int>(index - sum_from_);
    const std::int64_t previous = rank == 0 ? 0 : index - 1;
    if (rank == k_)
      return {.kind = StepKind::copy,
              .range = part(me_),
              .slot = 2 * k_,
              .to_slot = true,
              .sum = true,
              .after = {previous, -1}};
    return {.kind = rank == 0 ? StepKind::copy : StepKind::reduce,
            .range = part(me_),
            .slot = rank == me_ ? me_ : k_ + rank,
            .after = {rank == me_ ? 0 : scatter_begin((me_ - rank + k_) % k_), previous}};
  }

  Step gather(std::int64_t index) const {
    const int d = round_of(index, [this](int round) { return gather_begin(round); });
    const int from = before(d);
    const std::int64_t which = index - gather_begin(d) + (from < owners_ ? 0 : 2);
    if (which == 2)
      return {
          .kind = StepKind::send, .peer = next(d), .range = part(me_), .slot = 2 * k_, .after = {gather_from_ - 1, -1}};
    if (which == 1) return {.kind = StepKind::copy, .range = part(from), .slot = from, .after = {index - 1, -1}};
    const std::int64_t sent = scatter_begin((from - me_ + k_) % k_) + own_ + 1;
    return {.kind = StepKind::recv, .peer = from, .range = part(from), .slot = from, .after = {sent, -1}};
  }

  int k_, me_;
  std::int64_t elems_;
  int owners_, own_;  // own_: 1 if this rank owns a part
  std::int64_t sum_from_, gather_from_;
};

}  // namespace

std::shared_ptr<const Plan> make_direct_allreduce(const AllreduceRequest& request) {
  return std::make_shared<DirectPlan>(request);
}

}  // namespace echelon::inline comm
