// Around any transport: messages late or lost, ranks that stop, a rank cut off from others. By seed, so that a schedule
// of faults can be repeated. On virtual time for protocols by the thousand, on MPI for the faults of real runs.
//
// A message that is held back keeps those behind it of the same (peer, tag) back too: order is what the transport
// promises. What is lost is complete for its sender and never sent. While the rank stops, none of its requests starts
// or completes; other ranks receive nothing.
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
  // Of the transport's clock; the rank stops for `stop_for_s` (infinity: for good).
  double stop_at_s = std::numeric_limits<double>::infinity();
  double stop_for_s = std::numeric_limits<double>::infinity();
  // From `cut_at_s` on nothing is exchanged with these ranks.
  double cut_at_s = std::numeric_limits<double>::infinity();
  std::set<int> cut_from = {};
};

std::unique_ptr<Transport> make_disturbed(std::unique_ptr<Transport> inner, Disturbance disturbance);

}  // namespace echelon::inline comm
