// SPDX-License-Identifier: Apache-2.0
// The launch that `echelon check` plans for: ranks, hosts, and everything derived from them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "comm/host_groups.hpp"
#include "config/roles.hpp"
#include "parallel/footprint.hpp"
#include "train/run_plan.hpp"

namespace echelon::cli {

// The launch that the options describe, with the plan that `train` would make for it. Built in one process without MPI.
struct Check {
  Config config;
  int ranks = 1;                    // processes of the launch, servers included
  int hosts = 1;                    // simulated hosts of [network] if messages are shaped
  int machines = 1;                 // machines whose memory and cores the ranks share
  std::optional<RunInputs> inputs;  // none if the training data are not on this machine
  std::optional<Mesh> mesh;
  std::optional<RunPlan> plan;     // plan of the first rank
  std::vector<std::string> notes;  // about the config
  std::vector<std::string> warnings;

  void warn(std::string text) { warnings.push_back(std::move(text)); }
  Roles roles() const { return roles_of(config, ranks); }
  int workers() const { return roles().workers; }
  int servers() const { return roles().servers; }
  int ranks_a_host() const {
    return config.network.rate.empty() ? (ranks + hosts - 1) / hosts
                                       : std::min(ranks, static_cast<int>(config.network.ranks_per_host));
  }
  // [rank]: ranks fill one host after another, as launchers do.
  std::vector<int> hosts_of_ranks() const { return groups_of_ranks(ranks, ranks_a_host()); }
  std::vector<int> machines_of_ranks() const { return groups_of_ranks(ranks, (ranks + machines - 1) / machines); }
  std::vector<std::string> host_names() const {
    std::vector<std::string> names;
    for (int h = 0; h < hosts; ++h) names.push_back(std::to_string(h));
    return names;
  }
  // Hosts of the ranks over which the gradients of the model's first part are summed: the holders of that part, one per
  // replica, then the dedicated servers. Requires `mesh`.
  std::vector<int> hosts_of_replicas() const {
    const std::vector<int> of_rank = hosts_of_ranks();
    std::vector<int> of_replica;
    for (const int rank : mesh->holders(0)) of_replica.push_back(of_rank[static_cast<std::size_t>(rank)]);
    of_replica.insert(of_replica.end(), of_rank.end() - servers(), of_rank.end());
    return of_replica;
  }
};

// Sets ranks, hosts and the config for them (config_for_ranks) from the options. Throws ConfigError with the valid
// range if --replicas, --ranks or --hosts do not fit.
void place_ranks(Check& check, const CheckOptions& options);

// Returns the memory of each rank on the host that needs most. `memory`: of the workers, by index in their model group.
// Servers hold weights, gradients and optimiser states of a whole model, but no activations.
std::vector<Footprint> fullest_host(const Check& check, const std::vector<Footprint>& memory);

}  // namespace echelon::cli
