// SPDX-License-Identifier: Apache-2.0
#include "cli/foresee_launch.hpp"

#include <algorithm>

#include "cli/check_launch.hpp"
#include "cli/mesh_text.hpp"
#include "config/parse.hpp"
#include "parallel/memory_limit.hpp"

namespace echelon::cli {

LaunchMemory foresee_memory(const CheckOptions& options) {
  Check check;
  check.config = load_config(options.config, options.sets, &check.notes);
  place_ranks(check, options);
  const Config& config = check.config;
  RunInputs inputs = open_inputs(config);
  LaunchMemory made{.config = config, .samples = inputs.train.samples(), .batch = {}, .of_ranks = {}};
  if (config.parallel.split == "auto") return made;
  check.mesh = mesh_of_workers(config, check.roles(), check.hosts_of_ranks(), check.host_names());
  const Mesh& mesh = *check.mesh;
  check.plan = plan_run(config, mesh, mesh.coord(0), std::move(inputs));
  made.batch = check.plan->batch;
  std::vector<Footprint> memory;
  if (mesh.splits())
    memory = mesh_table(config, *check.plan, mesh, check.hosts_of_ranks()).memory;
  else
    memory.push_back(check.plan->memory_of(config, check.plan->part, mesh.coord(0)));
  made.steps = check.plan->total_steps;
  made.of_ranks = fullest_host(check, memory);
  return made;
}

Foreseen foresee_launch(const CheckOptions& options, int beside) {
  const LaunchMemory launch = foresee_memory(options);
  std::vector<Footprint> all;
  for (int i = 0; i < beside; ++i) all.insert(all.end(), launch.of_ranks.begin(), launch.of_ranks.end());
  if (!all.empty()) require_memory(launch.config, all);
  Foreseen foreseen{.steps = launch.steps};
  for (const Footprint& rank : launch.of_ranks)
    foreseen.memory_bytes = std::max(foreseen.memory_bytes, rank.total() + rank.checkpoint + rank.host);
  return foreseen;
}

}  // namespace echelon::cli
