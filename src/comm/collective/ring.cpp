// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter around a ring, then all-gather around it: every rank sends 2(k-1)/k of the buffer, to its right
// neighbour only. Patarasu, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69 (2009).
//
// The buffer is cut into k parts, each part into m segments that follow each other around the ring, so that adding one
// segment overlaps with sending the next. With t = s*m + j (round s of k-1, segment j of m):
//
//   reduce-scatter   recv  segment j of part me-s-1 into slot t mod L   after the add of t-L
//                    send  segment j of part me-s                       after the add of t-m
//                    add   slot t mod L to segment j of part me-s-1     after the recv
//   all-gather       recv  segment j of part me-s                       after it was sent in the reduce-scatter
//                    send  segment j of part me+1-s                     after it was received (s = 0: added)
//
// Every part is summed along one path and then copied, so all ranks end with the same bits.
#include <algorithm>

#include "base/check.hpp"
#include "comm/collective/halves.hpp"

namespace echelon::inline comm {
namespace {

constexpr int kSlots = 4;

class RingPlan final : public Plan {
 public:
  // Needs elems >= ranks >= 2, so that no segment is empty.
  explicit RingPlan(const AllreduceRequest& request)
      : k_(request.ranks), me_(request.rank), elems_(request.elems), segments_(segments_for(request)) {}

  std::string_view name() const override { return "ring"; }
  std::int64_t steps() const override { return 5 * (k_ - 1) * segments_; }
  int slots() const override { return static_cast<int>(std::min<std::int64_t>(kSlots, (k_ - 1) * segments_)); }
  std::int64_t slot_elems() const override { return segment(0, 0).elems(); }

  Step step(std::int64_t index) const override {
    const std::int64_t gathers_from = 3 * (k_ - 1) * segments_;
    return index < gathers_from ? scatter(index / 3, index % 3)
                                : gather((index - gathers_from) / 2, (index - gathers_from) % 2, gathers_from);
  }

 private:
  static std::int64_t segments_for(const AllreduceRequest& request) {
    const std::int64_t grain = request.segment_elems > 0 ? request.segment_elems : kDefaultSegment;
    return (request.elems / request.ranks + grain - 1) / grain;
  }

  ElemRange segment(std::int64_t part, std::int64_t j) const {
    const ElemRange whole = even_part(elems_, k_, static_cast<int>((part % k_ + k_) % k_));
    const ElemRange cut = even_part(whole.elems(), static_cast<int>(segments_), static_cast<int>(j));
    return {whole.begin + cut.begin, whole.begin + cut.end};
  }
  int left() const { return (me_ - 1 + k_) % k_; }
  int right() const { return (me_ + 1) % k_; }

  Step scatter(std::int64_t t, std::int64_t which) const {
    const std::int64_t s = t / segments_, j = t % segments_;
    const int slot = static_cast<int>(t % slots());
    const auto added = [](std::int64_t earlier) { return earlier < 0 ? std::int64_t{-1} : 3 * earlier + 2; };
    if (which == 0)
      return {.kind = StepKind::recv,
              .peer = left(),
              .range = segment(me_ - s - 1, j),
              .slot = slot,
              .after = {added(t - slots()), -1}};
    if (which == 1)
      return {.kind = StepKind::send,
              .peer = right(),
              .range = segment(me_ - s, j),
              .after = {s == 0 ? -1 : added(t - segments_), -1}};
    return {.kind = StepKind::reduce, .range = segment(me_ - s - 1, j), .slot = slot, .after = {3 * t, -1}};
  }

  Step gather(std::int64_t t, std::int64_t which, std::int64_t gathers_from) const {
    const std::int64_t s = t / segments_, j = t % segments_;
    if (which == 0)
      return {.kind = StepKind::recv, .peer = left(), .range = segment(me_ - s, j), .after = {3 * t + 1, -1}};
    const std::int64_t ready = s == 0 ? 3 * ((k_ - 2) * segments_ + j) + 2 : gathers_from + 2 * (t - segments_);
    return {.kind = StepKind::send, .peer = right(), .range = segment(me_ + 1 - s, j), .after = {ready, -1}};
  }

  int k_, me_;
  std::int64_t elems_, segments_;
};

// The same as a listed plan for any parts: used if some are empty, and for the halves of another plan.
void reduce(PlanBuilder& plan, const Team& team, const Parts& parts) {
  const int k = team.size(), left = team[(team.me + k - 1) % k], right = team[(team.me + 1) % k];
  const auto part = [&](int index) { return parts[static_cast<std::size_t>((index + 2 * k) % k)]; };
  for (int s = 0; s < k - 1; ++s)
    plan.exchange(right, part(team.me - s - 1), left, part(team.me - s - 2), PlanBuilder::Arrival::adds);
}

void gather(PlanBuilder& plan, const Team& team, const Parts& parts) {
  const int k = team.size(), left = team[(team.me + k - 1) % k], right = team[(team.me + 1) % k];
  const auto part = [&](int index) { return parts[static_cast<std::size_t>((index + 2 * k) % k)]; };
  for (int s = 0; s < k - 1; ++s)
    plan.exchange(right, part(team.me - s), left, part(team.me - s - 1), PlanBuilder::Arrival::replaces);
}

}  // namespace

const Halves ring_halves = {.most_owners = every_rank,
                            .parts = even_parts,
                            .reduce = reduce,
                            .gather = gather,
                            .steps = [](int ranks) { return ranks - 1; },
                            .messages = messages_to_all};

std::shared_ptr<const Plan> make_ring_allreduce(const AllreduceRequest& request) {
  if (request.ranks == 1 || request.elems == 0) return std::make_shared<ListedPlan>("ring", std::vector<Step>{});
  if (request.elems < request.ranks) return make_by_halves("ring", request, request.ranks);
  return std::make_shared<RingPlan>(request);
}

// The number of segments follows from the plan of any rank: 5 steps per round and segment.
Price price_ring(const AllreduceRequest& request) {
  const std::int64_t k = request.ranks, n = request.elems;
  ECHELON_CHECK_GE(k, 2, "ranks of a price");
  const std::int64_t parts = n < k ? n : k;
  const std::int64_t segments = n < k ? 1 : make_ring_allreduce(request)->steps() / (5 * (k - 1));
  return {.messages = 2 * (k - 1) * parts * segments,
          .payload_elems = 2 * (k - 1) * n,
          .steps = static_cast<int>(2 * (k - 1))};
}

}  // namespace echelon::inline comm
