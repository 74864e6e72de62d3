// SPDX-License-Identifier: Apache-2.0
// Reduces any number of ranks k = p + r to p, the largest power of two; used by `butterfly` and `halving_doubling`.
//
// Among the first 2r ranks each odd one sends its buffer to its left neighbour, which represents both, and receives
// the sum at the end: 2 r messages of the buffer, 2 more steps. Each of the p others represents one rank or two
// neighbours, in order, so that sums stay contiguous (Thakur, Rabenseifner, Gropp 2005).
#pragma once

#include <bit>

#include "comm/collective/builder.hpp"

namespace echelon::inline comm {

struct Folded {
  explicit Folded(int ranks) : p(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))), r(ranks - p) {}

  int p, r;

  bool steps_aside(int index) const { return index < 2 * r && index % 2 == 1; }
  bool represents_two(int index) const { return index < 2 * r && index % 2 == 0; }
  // Converts the index of a rank that takes part to its number among the p, and back.
  int number(int index) const { return index < 2 * r ? index / 2 : index - r; }
  int index(int number) const { return number < r ? 2 * number : number + r; }
  // log2 p.
  int rounds() const { return static_cast<int>(std::bit_width(static_cast<unsigned>(p))) - 1; }

  // Called by all k ranks before and after the exchange among the p.
  void fold(PlanBuilder& plan, const Team& team, ElemRange range) const {
    using Arrival = PlanBuilder::Arrival;
    if (steps_aside(team.me)) plan.exchange(team[team.me - 1], range, -1, {}, Arrival::adds);
    if (represents_two(team.me)) plan.exchange(-1, {}, team[team.me + 1], range, Arrival::adds);
  }
  void unfold(PlanBuilder& plan, const Team& team, ElemRange range) const {
    using Arrival = PlanBuilder::Arrival;
    if (steps_aside(team.me)) plan.exchange(-1, {}, team[team.me - 1], range, Arrival::replaces);
    if (represents_two(team.me)) plan.exchange(team[team.me + 1], range, -1, {}, Arrival::replaces);
  }
};

}  // namespace echelon::inline comm
