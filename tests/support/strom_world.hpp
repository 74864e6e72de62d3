// Decentralised exchange (strategy "strom") on virtual time: schedules of replicas, speeds and delays, drawn by seed,
// on each of which replicas send real messages of made-up updates; and the same loop replayed from its recorded
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
  bool dyadic = false;  // updates and tau are such that no sum rounds
  std::int64_t warmup_steps = 0;
  std::vector<std::int64_t> buckets;             // values of each, at least 1
  std::vector<std::vector<std::int64_t>> steps;  // by rank and epoch; asynchronous: a meeting after each epoch
  // Timing.
  double compute_s = 100e-6;             // of a step
  double spread = 1;                     // of that time: uniform in compute_s * [1 - spread / 2, 1 + spread / 2]
  std::vector<double> slowness;          // by rank
  int sends = 8;                         // budget of sends under way, by rank
  std::vector<Disturbance> disturbance;  // by rank
  VirtualNetwork network;

  std::int64_t elems() const;
};

// Anything that the protocol permits; the same for the same seed.
StromSchedule draw_strom_schedule(std::uint64_t seed);
// All equal, one bucket, no delays.
StromSchedule equal_replicas(int ranks, std::int64_t steps, bool asynchronous);

// What a replica did, in order: a step of its own, whose buckets were sent or held; or a message that it applied.
struct StromEvent {
  int origin = 0;  // the replica itself: a step
  int bucket = 0;  // of a message
  std::vector<char> held;
};

struct StromOutcome {
  using Bytes = std::vector<std::byte>;
  std::vector<std::vector<StromEvent>> events;            // by rank
  std::vector<Bytes> weights, residuals;                  // by rank, at the end, of the format's dtype
  std::vector<std::vector<std::vector<Bytes>>> messages;  // by rank and bucket, in the order in which they were made
  std::vector<std::int64_t> held;                         // by rank: parts of updates
  std::vector<double> ended_s;                            // by rank: of its last step
  std::uint64_t sent_messages = 0, sent_bytes = 0;
};

// Runs it to its end. A failed check or EnvironmentError where a message is lost, applied twice or out of order, more
// of them are under way than the protocol permits, replicas meet without having all, sent and residual are not the sum
// of the updates, synchronous replicas differ, or somebody does not end.
StromOutcome run_strom(const StromSchedule& schedule);

// The weights of each rank in double, of plain loops over the recorded events, which share no code with the strategy;
// only for a fixed tau and f64.
std::vector<std::vector<double>> replay_strom(const StromSchedule& schedule, const StromOutcome& recorded);

}  // namespace echelon::test
