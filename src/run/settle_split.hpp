// What [parallel] leaves open, settled for the ranks of a launch: whether and how the model is split, what layers cost.
#pragma once

#include <string>
#include <vector>

#include "comm/engine.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline run {

// `config` for a launch of so many ranks, servers included: one rank alone trains a split model whole, with a note for
// people, and parallel.recurrent_from = -1 becomes a number.
Config config_for_ranks(Config config, int ranks, std::vector<std::string>& notes);

struct SettledSplit {
  ParallelConfig parallel;     // given, whatever was asked for
  std::vector<double> node_s;  // by node: of one sample, measured; empty where FLOPs are to be counted
  std::string report;          // for people; empty where nothing was chosen
};

// Whether there is anything to settle.
bool leaves_open(const ParallelConfig& parallel);
// Collective over the world, on `channel`; every rank gets the same. Measures on a device of the run's kind that is
// opened and closed here. Throws on all ranks what plan_run throws, and MemoryError where nothing fits.
SettledSplit settle_split(const Config& config, const RunInputs& inputs, const DeviceOptions& device, Engine& world,
                          int channel);

}  // namespace echelon::inline run
