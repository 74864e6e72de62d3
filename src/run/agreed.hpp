// SPDX-License-Identifier: Apache-2.0
// A phase of an attempt: all ranks have the same config, plan and start. Nothing of it changes any more.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/stage_folder.hpp"
#include "run/placed.hpp"
#include "run/replay.hpp"
#include "run/resolve_split.hpp"
#include "run/resume.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline run {

// The config that all ranks have read; its split is known once the data have been opened.
struct Settings {
  Config config;
  std::vector<std::string> notes;  // on keys that were changed
  ResolvedSplit split;
};

struct Agreed : Settings {
  RunPlan plan;
  RunReplay replay;
  Decision start;
  std::unique_ptr<StageFolder> staged;  // null unless this rank has copied shards
};

// All are collective; errors are the same on all ranks.
Settings read_settings(AttemptContext& context);
RunInputs read_inputs(AttemptContext& context, Settings& settings);
// If the run is finished already (start.finished), no shards are copied.
Agreed agree(AttemptContext& context, const Placed& placed, Settings settings, RunInputs inputs);

}  // namespace echelon::inline run
