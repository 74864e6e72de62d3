// Faults by seed around any transport: messages delayed or lost, a rank that stops for a time, a rank cut off from
// others. The same seed draws the same faults for the same sequence of calls: exactly repeatable on virtual time, where
// schedules run by the thousand, and the same faults at other moments on MPI. For tests, and for faults that a run is
// to have ([fault]).
//
// A message that is delayed delays the later ones of the same (peer, tag) too, because the transport promises their
// order. A message that is lost is complete for its sender and never sent. While the rank is stopped, none of its
// requests starts or completes, no step of its plans on shared memory, and other ranks receive nothing from it. Library
// calls, shared memory and counters are passed through; a dropped message is in no counter.
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

// Faults of a rank's messages that other code decides on (fault/injector.hpp). Called by the thread that drives the
// transport.
class MessageFaults {
 public:
  struct Fate {
    bool lost = false;
    double delay_s = 0;
    std::int64_t flipped_bit = -1;  // of the message; -1: it arrives as it was sent
  };
  virtual ~MessageFaults() = default;
  // Of the next message that this rank sends.
  virtual Fate fate_of(int peer, int tag, std::size_t bytes) = 0;
  // Whether this rank exchanges nothing with any other from now on.
  virtual bool is_cut() = 0;
};

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
  MessageFaults* faults = nullptr;  // beside those above; outlives the transport
};

// The faults of the rank of `inner`; transports that are split from it have the same. Threads as for `inner`.
std::unique_ptr<Transport> make_disturbed(std::unique_ptr<Transport> inner, Disturbance disturbance);

}  // namespace echelon::inline comm
