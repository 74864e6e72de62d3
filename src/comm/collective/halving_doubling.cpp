// SPDX-License-Identifier: Apache-2.0
// Rabenseifner's algorithm: in round i of the reduce each rank sends half of the range that it still sums to the rank
// whose number differs in bit i, and receives that rank's share of its own half; the gather goes back the same way. It
// sends the bytes of a ring in 2 log2 p steps.
//
// Distance doubles over contiguous ranks: a power of two of ranks sums ((0+1)+(2+3))+((4+5)+(6+7)), whatever the
// element. Rabenseifner: Optimization of collective reduction operations, ICCS 2004.
#include <algorithm>

#include "comm/collective/folded.hpp"
#include "comm/collective/halves.hpp"

namespace echelon::inline comm {
namespace {

// The range of a buffer that remains after its halvings by the lower bits of `number`; bit 0 of `owners` cuts first.
ElemRange part_of(std::int64_t elems, int number, int owners) {
  ElemRange range{0, elems};
  for (int bit = 1; bit < owners; bit <<= 1) {
    const std::int64_t middle = range.begin + (range.elems() + 1) / 2;
    range = (number & bit) == 0 ? ElemRange{range.begin, middle} : ElemRange{middle, range.end};
  }
  return number < owners ? range : ElemRange{};
}

Parts parts(std::int64_t elems, int ranks, int owners) {
  const Folded folded(ranks);
  Parts all(static_cast<std::size_t>(ranks));
  for (int number = 0; number < owners; ++number)
    all[static_cast<std::size_t>(folded.index(number))] = part_of(elems, number, owners);
  return all;
}

// The range that all numbers with the lower bits of `number` (those below `bit`) own together.
ElemRange block(const Parts& parts, const Folded& folded, int number, int bit) {
  ElemRange whole;
  for (int other = number & (bit - 1); other < folded.p; other += bit) {
    const ElemRange part = parts[static_cast<std::size_t>(folded.index(other))];
    if (part.empty()) continue;
    whole = whole.empty() ? part : ElemRange{std::min(whole.begin, part.begin), std::max(whole.end, part.end)};
  }
  return whole;
}

// `of(number, bit)` is the block of `number`, as above.
template <class Block>
void add_reduce(PlanBuilder& plan, const Team& team, const Block& of) {
  const Folded folded(team.size());
  folded.fold(plan, team, of(0, 1));
  if (folded.steps_aside(team.me)) return;
  const int me = folded.number(team.me);
  for (int bit = 1; bit < folded.p; bit <<= 1) {
    const int peer = team[folded.index(me ^ bit)];
    plan.exchange(peer, of(me ^ bit, 2 * bit), peer, of(me, 2 * bit), PlanBuilder::Arrival::adds);
  }
}

template <class Block>
void add_gather(PlanBuilder& plan, const Team& team, const Block& of) {
  const Folded folded(team.size());
  const int me = folded.number(team.me);
  if (!folded.steps_aside(team.me))
    for (int bit = folded.p / 2; bit > 0; bit >>= 1) {
      const int peer = team[folded.index(me ^ bit)];
      plan.exchange(peer, of(me, 2 * bit), peer, of(me ^ bit, 2 * bit), PlanBuilder::Arrival::replaces);
    }
  folded.unfold(plan, team, of(0, 1));
}

// The reduce for given parts; O(k) work.
void reduce(PlanBuilder& plan, const Team& team, const Parts& parts) {
  const Folded folded(team.size());
  add_reduce(plan, team, [&](int number, int bit) { return block(parts, folded, number, bit); });
}

void gather(PlanBuilder& plan, const Team& team, const Parts& parts) {
  const Folded folded(team.size());
  add_gather(plan, team, [&](int number, int bit) { return block(parts, folded, number, bit); });
}

int steps(int ranks) {
  const Folded folded(ranks);
  return folded.rounds() + (folded.r > 0 ? 1 : 0);
}

std::int64_t messages(const Parts& parts, std::int64_t segment) {
  const Folded folded(static_cast<int>(parts.size()));
  std::int64_t count = folded.r * segments_of(block(parts, folded, 0, 1).elems(), segment);
  for (int bit = 1; bit < folded.p; bit <<= 1)
    for (int number = 0; number < 2 * bit; ++number)
      count += folded.p / (2 * bit) * segments_of(block(parts, folded, number, 2 * bit).elems(), segment);
  return count;
}

int most_owners(int ranks) { return Folded(ranks).p; }

}  // namespace

const Halves halving_doubling_halves = {.most_owners = most_owners,
                                        .parts = parts,
                                        .reduce = reduce,
                                        .gather = gather,
                                        .steps = steps,
                                        .messages = messages};

std::shared_ptr<const Plan> make_halving_doubling_allreduce(const AllreduceRequest& request) {
  PlanBuilder plan(request.segment_elems);
  if (request.elems > 0) {
    // If all p own a part, the lower bits alone determine a block.
    const auto of = [&](int number, int bit) { return part_of(request.elems, number & (bit - 1), bit); };
    add_reduce(plan, everyone(request), of);
    add_gather(plan, everyone(request), of);
  }
  return plan.finish("halving_doubling");
}

Price price_halving_doubling(const AllreduceRequest& request) {
  return price_by_halves("halving_doubling", request, Folded(request.ranks).p);
}

}  // namespace echelon::inline comm
