// SPDX-License-Identifier: Apache-2.0
// Injects seeded faults around any transport: messages that are delayed or lost, a rank that stops for a time, a rank
// that is cut off from others. The same seed gives the same faults for the same sequence of calls. Runs on virtual time
// are exactly repeatable, and schedules run there by the thousand; on MPI the faults come at other moments. Used in
// tests, and for the faults that a run is configured to have ([fault]).
//
// A delayed message also delays the later ones of the same (peer, tag), because the transport promises their order. A
// lost message is complete for its sender and never sent. While the rank is stopped, none of its requests starts or
// completes, nor does any step of its plans on shared memory, and other ranks receive nothing from it. Library calls,
// `share` and counters are passed through; no counter includes a dropped message.
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

// Faults of a rank's messages that other code decides (fault/injector.hpp). Called by the thread that drives the
// transport.
class MessageFaults {
 public:
  struct Fate {
    bool lost = false;
    double delay_s = 0;
    std::int64_t flipped_bit = -1;  // bit of the message that is flipped; -1: it arrives as it was sent
  };
  virtual ~MessageFaults() = default;
  // Decides the fate of the next message that this rank sends.
  virtual Fate fate_of(int peer, int tag, std::size_t bytes) = 0;
  // Whether this rank exchanges nothing with any other rank from now on.
  virtual bool is_cut() = 0;
};

struct Disturbance {
  std::uint64_t seed = 1;
  double delay_s = 0;  // mean of an exponential delay of each message that this rank sends
  double drop = 0;     // probability that a message is lost, in [0, 1]
  // The rank is stopped from stop_at_s, a time of the transport's clock, for stop_for_s seconds (infinity: for ever).
  double stop_at_s = std::numeric_limits<double>::infinity();
  double stop_for_s = std::numeric_limits<double>::infinity();
  // From `cut_at_s` on nothing is exchanged with the ranks in `cut_from`.
  double cut_at_s = std::numeric_limits<double>::infinity();
  std::set<int> cut_from = {};
  MessageFaults* faults = nullptr;  // in addition to the faults above; outlives the transport
};

// Injects faults into the messages of `inner`; transports that are split from the result have the same faults. The
// threading rules are those of `inner`.
std::unique_ptr<Transport> make_disturbed(std::unique_ptr<Transport> inner, Disturbance disturbance);

}  // namespace echelon::inline comm
