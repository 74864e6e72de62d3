// What [parallel] leaves to be found out on these ranks: what layers cost, and how the model is split.
#pragma once

#include <string>
#include <vector>

#include "comm/engine.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"

namespace echelon {

struct SettledSplit {
  ParallelConfig parallel;     // given, whatever was asked for
  std::vector<double> node_s;  // by node: of one sample, measured; empty where FLOPs are to be counted
  std::string report;          // for people; empty where nothing was chosen
};

// Whether there is anything to settle.
bool leaves_open(const ParallelConfig& parallel);
// Collective over the world, on `channel`; every rank gets the same. Measures on a device of the run's kind that is
// opened and closed here. Throws on all ranks what plan_run throws, and MemoryError where nothing fits.
SettledSplit settle_split(const Config& config, const DeviceOptions& device, Engine& world, int channel);

}  // namespace echelon
