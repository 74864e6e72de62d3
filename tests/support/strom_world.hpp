// SPDX-License-Identifier: Apache-2.0
// Decentralised exchange (strategy "strom") on virtual time: schedules of replicas, speeds and delays, drawn from a
// seed, on which replicas send real messages of made-up updates; and a replay of the same loop from its recorded
// arrivals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/dtype.hpp"
#include "comm/disturbed.hpp"
#include "comm/virtual/world.hpp"
#include "exchange/strom/coder.hpp"

namespace echelon::test {

struct StromSchedule {
  int ranks = 2;
  bool asynchronous = false, ring = false;
  StromFormat format;
  bool dyadic = false;  // updates and tau are chosen such that no sum rounds
  std::int64_t warmup_steps = 0;
  std::vector<std::int64_t> buckets;             // values of each bucket, at least 1
  std::vector<std::vector<std::int64_t>> steps;  // by rank and epoch; in asynchronous runs a meeting follows each epoch
  // Timing.
  double compute_s = 100e-6;             // mean time of a step
  double spread = 1;                     // a step takes uniformly compute_s * [1 - spread / 2, 1 + spread / 2]
  std::vector<double> slowness;          // factor of the step time, one per rank
  int sends = 8;                         // most sends that a rank may have in flight
  std::vector<Disturbance> disturbance;  // one per rank
  VirtualNetwork network;

  std::int64_t elems() const;
};

// Draws any schedule that the protocol permits; the same seed gives the same schedule.
StromSchedule draw_strom_schedule(std::uint64_t seed);
// Equal replicas, one bucket, no delays.
StromSchedule equal_replicas(int ranks, std::int64_t steps, bool asynchronous);

// An event of a replica: a step of its own, whose buckets were sent or held, or a message that it applied.
struct StromEvent {
  int origin = 0;  // the replica itself for a step
  int bucket = 0;  // the message's bucket
  std::vector<char> held;
};

struct StromOutcome {
  using Bytes = std::vector<std::byte>;
  std::vector<std::vector<StromEvent>> events;            // by rank, in order
  std::vector<Bytes> weights, residuals;                  // at the end, one per rank, in the format's dtype
  std::vector<std::vector<std::vector<Bytes>>> messages;  // by rank and bucket, in the order in which they were made
  std::vector<std::int64_t> held;                         // by rank: parts of updates that were held back
  std::vector<double> ended_s;                            // by rank: end of its last step
  std::uint64_t sent_messages = 0, sent_bytes = 0;
};

// Runs the schedule to its end. Fails a check or throws EnvironmentError where a message is lost, applied twice or out
// of order, more messages are in flight than the protocol permits, replicas meet without all messages, sent messages
// and residual are not the sum of the updates, synchronous replicas differ, or a rank does not end.
StromOutcome run_strom(const StromSchedule& schedule);

// Computes the weights of each rank in double by plain loops over the recorded events, without code of the strategy.
// Only for a fixed tau and f64.
std::vector<std::vector<double>> replay_strom(const StromSchedule& schedule, const StromOutcome& recorded);

}  // namespace echelon::test
