// SPDX-License-Identifier: Apache-2.0
// Ranks of one host sum through shared memory (shared_channel.hpp), without a message. Every value is summed by one
// rank in one pass over all ranks' values, in one binary tree over ranks, or by all ranks in that same order.
//
//   one stage    two ranks, or few elements: each rank puts its values into its slot and sums all slots
//   two stages   each rank owns an even part: it puts the others' parts, sums its own, keeps the sum in its slot and
//                gets the other sums
//
// Buffers are processed in pieces, so that the slots stay in the cache and a rank fills one while others read another.
// In addition to the bytes that it sums, a rank copies G bytes in one stage, 2(k-1)/k G in two. As the inner part of
// `hierarchical`, the two stages are its reduce and its gather. Graham, Shipman, Euro PVM/MPI 2008; Jain et al., SC
// 2018 collectives with slots and flags).
#include <algorithm>

#include "base/error.hpp"
#include "comm/collective/halves.hpp"
#include "comm/shared_channel.hpp"

namespace echelon::inline comm {
namespace {

constexpr std::int64_t kSlot = SharedChannel::kSlotElems;
constexpr std::int64_t kOneStage = 2048;  // most elements for one stage with more than two ranks

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Cuts each part into the same number of pieces, which fit slots: piece c of every rank's part is in the slot of use c.
class Pieces {
 public:
  Pieces(const Team& team, const Parts& parts) : team_(team), parts_(parts) {
    std::int64_t most = 0;
    for (const ElemRange part : parts) most = std::max(most, part.elems());
    count_ = up(most, kSlot / team.size());
    stride_ = count_ > 0 ? up(most, count_) : 0;
  }
  std::int64_t count() const { return count_; }

  void put_for_others(PlanBuilder& plan, const SharedPart& at, std::int64_t c) const {
    for (int d = 1; d < team_.size(); ++d) add(plan, StepKind::put, at, (team_.me + d) % team_.size(), c);
  }
  void put_own(PlanBuilder& plan, const SharedPart& at, std::int64_t c) const {
    add(plan, StepKind::put, at, team_.me, c);
  }
  void sum_own(PlanBuilder& plan, const SharedPart& at, std::int64_t c) const {
    add(plan, StepKind::sum, at, team_.me, c);
  }
  void get_others(PlanBuilder& plan, const SharedPart& at, std::int64_t c) const {
    for (int d = 1; d < team_.size(); ++d) add(plan, StepKind::get, at, (team_.me + d) % team_.size(), c);
  }

 private:
  void add(PlanBuilder& plan, StepKind kind, SharedPart at, int index, std::int64_t c) const {
    const ElemRange part = parts_[static_cast<std::size_t>(index)];
    const ElemRange cut = even_part(part.elems(), static_cast<int>(count_), static_cast<int>(c));
    if (cut.empty()) return;
    at.use = c;
    at.offset = index * stride_;
    plan.on_shared(
        {.kind = kind, .peer = team_[index], .range = {part.begin + cut.begin, part.begin + cut.end}, .shared = at});
  }

  const Team& team_;
  const Parts& parts_;
  std::int64_t count_ = 0, stride_ = 0;
};

// In round i piece i is put and piece i - 1 is summed. Piece i - 1 has been read by all ranks that have passed the next
// put, which may be the first one of another plan.
void one_stage(PlanBuilder& plan, const Team& team, std::int64_t elems) {
  const std::int64_t count = up(elems, kSlot);
  plan.next_part(team, count, count);
  const auto piece = [&](std::int64_t c) { return even_part(elems, static_cast<int>(count), static_cast<int>(c)); };
  for (std::int64_t i = 0; i <= count; ++i) {
    if (i < count)
      plan.on_shared({.kind = StepKind::put,
                      .range = piece(i),
                      .shared = {.use = i, .phase = i + 1, .freed = std::min(i + 3, count + 1)}});
    if (i > 0) plan.on_shared({.kind = StepKind::sum, .range = piece(i - 1), .shared = {.use = i - 1}});
  }
}

// In round i piece i is put, piece i - 1 is summed and piece i - 2 is fetched, in phases 3i + 1 to 3i + 3.
void two_stages(PlanBuilder& plan, const Team& team, const Parts& parts) {
  const Pieces pieces(team, parts);
  const std::int64_t count = pieces.count(), rounds = count + 2;
  plan.next_part(team, 3 * rounds, count);
  for (std::int64_t i = 0; i < rounds; ++i) {
    if (i < count) pieces.put_for_others(plan, {.phase = 3 * i + 1, .freed = 3 * (i + 2) + 3}, i);
    if (i >= 1 && i <= count) pieces.sum_own(plan, {.phase = 3 * i + 2, .keeps = true}, i - 1);
    if (i >= 2) pieces.get_others(plan, {.phase = 3 * i + 3, .needs = 3 * (i - 1) + 2}, i - 2);
  }
}

// In round i piece i is put and piece i - 1 is summed, in phases 2i + 1 and 2i + 2.
void reduce(PlanBuilder& plan, const Team& team, const Parts& parts) {
  if (team.size() == 1) return;
  const Pieces pieces(team, parts);
  plan.next_part(team, 2 * (pieces.count() + 1), pieces.count());
  for (std::int64_t i = 0; i <= pieces.count(); ++i) {
    if (i < pieces.count()) pieces.put_for_others(plan, {.phase = 2 * i + 1, .freed = 2 * (i + 1) + 2}, i);
    if (i > 0) pieces.sum_own(plan, {.phase = 2 * i + 2}, i - 1);
  }
}

void gather(PlanBuilder& plan, const Team& team, const Parts& parts) {
  if (team.size() == 1) return;
  const Pieces pieces(team, parts);
  plan.next_part(team, 2 * (pieces.count() + 1), pieces.count());
  for (std::int64_t i = 0; i <= pieces.count(); ++i) {
    if (i < pieces.count()) pieces.put_own(plan, {.phase = 2 * i + 1, .freed = 2 * (i + 1) + 2}, i);
    if (i > 0) pieces.get_others(plan, {.phase = 2 * i + 2, .needs = 2 * (i - 1) + 1}, i - 1);
  }
}

int no_steps(int) { return 0; }
std::int64_t no_messages(const Parts&, std::int64_t) { return 0; }

}  // namespace

const Halves shared_halves = {.most_owners = every_rank,
                              .parts = even_parts,
                              .reduce = reduce,
                              .gather = gather,
                              .steps = no_steps,
                              .messages = no_messages,
                              .sends = false};

std::shared_ptr<const Plan> make_shared_allreduce(const AllreduceRequest& request) {
  if (std::any_of(request.hosts.begin(), request.hosts.end(), [&](int host) { return host != request.hosts[0]; }))
    throw ConfigError(
        "all-reduce 'shared' sums in the memory of one host, but ranks are on several; nearest valid: 'hierarchical' "
        "with "
        "inner = \"shared\"");
  PlanBuilder plan(request.segment_elems);
  if (request.ranks > 1 && request.elems > 0) {
    const Team team = everyone(request);
    if (request.ranks == 2 || request.elems <= kOneStage)
      one_stage(plan, team, request.elems);
    else
      two_stages(plan, team, even_parts(request.elems, request.ranks, request.ranks));
  }
  return plan.finish("shared");
}

// It sends nothing.
Price price_shared(const AllreduceRequest&) { return {}; }

}  // namespace echelon::inline comm
