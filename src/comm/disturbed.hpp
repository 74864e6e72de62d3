// Faults by seed around any transport: messages delayed or lost, a rank that stops for a time, a rank cut off from
// others. The same seed draws the same faults for the same sequence of calls: exactly repeatable on virtual time, where
// schedules run by the thousand, and the same faults at other moments on MPI. For tests.
//
// A message that is delayed delays the later ones of the same (peer, tag) too, because the transport promises their
// order. A message that is lost is complete for its sender and never sent. While the rank is stopped, none of its
// requests starts or completes, and other ranks receive nothing from it. Library calls and counters are passed through;
// a dropped message is in no counter.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/hash_rng.hpp"
#include "comm/transport.hpp"

namespace echelon::inline comm {

struct Disturbance {
  std::uint64_t seed = 1;
  double delay_s = 0;  // mean of an exponential delay of each message that this rank sends
  double drop = 0;     // probability that a message is lost, in [0, 1]
  // In seconds of the transport's clock: stopped from stop_at_s for stop_for_s (infinity: for ever).
  double stop_at_s = std::numeric_limits<double>::infinity();
  double stop_for_s = std::numeric_limits<double>::infinity();
  // From `cut_at_s` on nothing is exchanged with these ranks.
  double cut_at_s = std::numeric_limits<double>::infinity();
  std::set<int> cut_from = {};
};

// The faults of the rank of `inner`; transports that are split from it have the same. Threads as for `inner`.
std::unique_ptr<Transport> make_disturbed(std::unique_ptr<Transport> inner, Disturbance disturbance);

}  // namespace echelon::inline comm
