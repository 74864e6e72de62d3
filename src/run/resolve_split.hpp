// SPDX-License-Identifier: Apache-2.0
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

// `config` for `ranks` ranks, servers included: on one rank a split model is trained unsplit, with a note, and
// parallel.recurrent_from = -1 is replaced by a number. Equal on every rank.
Config config_for_ranks(Config config, int ranks, std::vector<std::string>& notes);

// Refuses more updates together (exchange.asynchronous.soft) than a launch of `ranks` ranks has replicas.
void check_soft(const Config& config, int ranks);

struct ResolvedSplit {
  ParallelConfig parallel;     // split = "given"
  std::vector<double> node_s;  // by node: measured seconds of one sample; empty: costs are counted FLOPs
  std::string report;          // the table of candidates, for people; empty unless split was "auto"
};

// True if resolve_split must be called: split = "auto", or a pipeline with costs = "measured".
bool is_unresolved(const ParallelConfig& parallel);
// Collective over the world, on `channel`, blocking; every rank gets the same. Each layer is timed on one of the ranks,
// on a device of the run's kind that is opened and closed here; the network is probed by ping-pong (link_probe.hpp).
// Throws on all ranks as plan_run does, and MemoryError if no split fits the memory limit.
ResolvedSplit resolve_split(const Config& config, const RunInputs& inputs, const DeviceOptions& device, Engine& world,
                            int channel);

}  // namespace echelon::inline run
