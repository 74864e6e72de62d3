// SPDX-License-Identifier: Apache-2.0
// Recursive doubling: in round i every rank exchanges its whole sum with the rank whose number differs in bit i, so
// that after log2 p rounds all ranks have the total. Few steps, many bytes: for small buffers.
//
// Distance doubles over contiguous ranks, and a+b = b+a: a power of two of ranks sums ((0+1)+(2+3))+((4+5)+(6+7)) on
// all of them. Thakur, Rabenseifner, Gropp, IJHPCA 19 (2005).
#include "comm/collective/folded.hpp"
#include "comm/collective/halves.hpp"

namespace echelon::inline comm {

std::shared_ptr<const Plan> make_butterfly_allreduce(const AllreduceRequest& request) {
  PlanBuilder plan(request.segment_elems);
  const Team team = everyone(request);
  const Folded folded(request.ranks);
  const ElemRange all{0, request.elems};
  folded.fold(plan, team, all);
  if (!folded.steps_aside(team.me))
    for (int bit = 1; bit < folded.p; bit <<= 1) {
      const int peer = folded.index(folded.number(team.me) ^ bit);
      plan.exchange(peer, all, peer, all, PlanBuilder::Arrival::adds);
    }
  folded.unfold(plan, team, all);
  return plan.finish("butterfly");
}

Price price_butterfly(const AllreduceRequest& request) {
  const Folded folded(request.ranks);
  const std::int64_t times = folded.p * folded.rounds() + 2 * folded.r;
  return {.messages = times * segments_of(request.elems, request.segment_elems),
          .payload_elems = times * request.elems,
          .steps = folded.rounds() + (folded.r > 0 ? 2 : 0)};
}

}  // namespace echelon::inline comm
