// SPDX-License-Identifier: Apache-2.0
// Schedules all pairs of n players in rounds of disjoint pairs, by the circle method of round-robin tournaments (de
// Werra, Scheduling in sports, 1981): n - 1 rounds for even n; n rounds for odd n, in each of which one player rests.
#pragma once

namespace echelon::inline comm {

constexpr int tournament_rounds(int players) { return players < 2 ? 0 : players - 1 + players % 2; }

// The opponent of `me` in [0, players) in a round; -1: `me` rests. The relation is mutual, and every pair meets once.
// O(1).
constexpr int opponent_of(int me, int players, int round) {
  const int ring = players - 1 + players % 2;  // all but the player who keeps the same place
  const int other = me == ring ? static_cast<int>(static_cast<long long>(round) * ((ring + 1) / 2) % ring)
                               : ((round - me) % ring + ring) % ring;
  const int opponent = other == me ? ring : other;
  return opponent < players ? opponent : -1;
}

}  // namespace echelon::inline comm
