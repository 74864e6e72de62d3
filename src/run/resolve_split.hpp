// The keys of [parallel] that depend on the launch: whether and how the model is split over its ranks, and the measured
// costs of layers.
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

struct ResolvedSplit {
  ParallelConfig parallel;     // split = "given"
  std::vector<double> node_s;  // by node: measured seconds of one sample; empty: costs are counted FLOPs
  std::string report;          // the table of candidates, for people; empty unless split was "auto"
};

// Whether resolve_split is to be called: split = "auto", or a pipeline with costs = "measured".
bool is_unresolved(const ParallelConfig& parallel);
// Collective over the world, on `channel`; every rank gets the same. Measures on a device of the run's kind that is
// opened and closed here. Throws on all ranks what plan_run throws, and MemoryError where nothing fits.
ResolvedSplit resolve_split(const Config& config, const RunInputs& inputs, const DeviceOptions& device, Engine& world,
                            int channel);

}  // namespace echelon::inline run
