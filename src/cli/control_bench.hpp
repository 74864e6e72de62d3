// What the control of a run costs one rank of k, counted and timed of the machines and plans that runs use: all ranks
// on virtual time, in this process.
#pragma once

#include <string>
#include <vector>

namespace echelon::cli {

// Of the rank that has most, and of all ranks.
struct BusiestAndMean {
  double busiest = 0, mean = 0;
};

// Of one kind of control, a rank, in one round: a step, an interval, a call.
struct ControlCost {
  std::string part, round;
  BusiestAndMean sent, received;  // messages
  BusiestAndMean sent_bytes;      // without headers
  int links = 0;                  // in the longest chain of messages
  BusiestAndMean peers;           // ranks that it has sent to or received from: connections
  BusiestAndMean held_bytes;      // of its machine and driver, or of its plan and executor
  BusiestAndMean cpu_s;           // likewise, without the network: of each rank the median round
};

// Machines that run beside the exchange. `rounds` >= 1 are measured, after one that is not.
std::vector<ControlCost> measure_machines(int ranks, int rounds);
// Collectives of a Group (comm/group.hpp).
std::vector<ControlCost> measure_collectives(int ranks, int rounds);

}  // namespace echelon::cli
