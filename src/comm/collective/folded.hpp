// Any number of ranks as a power of two of them: what `butterfly` and `halving_doubling` do where k = p + r.
//
// Of the first 2r places each odd one sends its buffer to its left neighbour, which represents both, and receives the
// sum at the end. So the p that are left stand for contiguous ranks.
#pragma once

#include <bit>

#include "comm/collective/builder.hpp"

namespace echelon::inline comm {

struct Folded {
  explicit Folded(int ranks) : p(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))), r(ranks - p) {}

  int p, r;

  bool steps_aside(int place) const { return place < 2 * r && place % 2 == 1; }
  bool speaks_for_two(int place) const { return place < 2 * r && place % 2 == 0; }
  // Of the p: number of the place that does not step aside, and back.
  int number(int place) const { return place < 2 * r ? place / 2 : place - r; }
  int place(int number) const { return number < r ? 2 * number : number + r; }
  int rounds() const { return static_cast<int>(std::bit_width(static_cast<unsigned>(p))) - 1; }

  void fold(PlanBuilder& plan, const Team& team, ElemRange range) const {
    using Arrival = PlanBuilder::Arrival;
    if (steps_aside(team.me)) plan.exchange(team[team.me - 1], range, -1, {}, Arrival::adds);
    if (speaks_for_two(team.me)) plan.exchange(-1, {}, team[team.me + 1], range, Arrival::adds);
  }
  void unfold(PlanBuilder& plan, const Team& team, ElemRange range) const {
    using Arrival = PlanBuilder::Arrival;
    if (steps_aside(team.me)) plan.exchange(-1, {}, team[team.me - 1], range, Arrival::replaces);
    if (speaks_for_two(team.me)) plan.exchange(team[team.me + 1], range, -1, {}, Arrival::replaces);
  }
};

}  // namespace echelon::inline comm
