// SPDX-License-Identifier: Apache-2.0
// Measures the cost per rank of a run's control traffic on k ranks. Counts and times the machines and plans that runs
// use, with all ranks on virtual time in this process.
#pragma once

#include <string>
#include <vector>

namespace echelon::cli {

// The value of the busiest rank, and the mean over all ranks.
struct BusiestAndMean {
  double busiest = 0, mean = 0;
};

// The cost per rank of one kind of control in one round: a step, an interval or a call.
struct ControlCost {
  std::string part, round;
  BusiestAndMean sent, received;  // messages
  BusiestAndMean sent_bytes;      // bytes without headers
  int links = 0;                  // in the longest chain of messages
  BusiestAndMean peers;           // ranks that it has exchanged messages with, i.e. connections
  BusiestAndMean held_bytes;      // heap of its machine and driver, or of its plan and executor
  BusiestAndMean cpu_s;           // host time of the same, without the network: each rank's median round
};

// Measures the machines that run beside the exchange in `rounds` >= 1 rounds, after one that does not count.
std::vector<ControlCost> measure_machines(int ranks, int rounds);
// Measures the collectives of a Group (comm/group.hpp).
std::vector<ControlCost> measure_collectives(int ranks, int rounds);

}  // namespace echelon::cli
