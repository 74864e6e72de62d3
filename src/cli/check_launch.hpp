// The launch that `echelon check` plans for: ranks, hosts, and what follows from them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "config/roles.hpp"
#include "parallel/footprint.hpp"
#include "train/run_plan.hpp"

namespace echelon::cli {

// What is asked, and what `train` makes of it.
struct Check {
  Config config;
  int ranks = 1;  // of the launch, servers included
  int hosts = 1;
  std::optional<RunInputs> inputs;  // none where the data is not on this machine
  std::optional<Mesh> mesh;
  std::optional<RunPlan> plan;     // of the first rank
  std::vector<std::string> notes;  // on the config
  std::vector<std::string> warnings;

  void warn(std::string text) { warnings.push_back(std::move(text)); }
  Roles roles() const { return roles_of(config, ranks); }
  int workers() const { return roles().workers; }
  int servers() const { return roles().servers; }
  int ranks_a_host() const { return (ranks + hosts - 1) / hosts; }
  // As launchers do: ranks fill one host after another.
  std::vector<int> hosts_of_ranks() const {
    std::vector<int> of_rank;
    for (int r = 0; r < ranks; ++r) of_rank.push_back(r / ranks_a_host());
    return of_rank;
  }
  std::vector<std::string> host_names() const {
    std::vector<std::string> names;
    for (int h = 0; h < hosts; ++h) names.push_back(std::to_string(h));
    return names;
  }
  // Of the ranks that hold one part of the model, and of servers on ranks of their own.
  std::vector<int> hosts_of_replicas() const {
    const std::vector<int> of_rank = hosts_of_ranks();
    std::vector<int> of_replica;
    for (const int rank : mesh->holders(0)) of_replica.push_back(of_rank[static_cast<std::size_t>(rank)]);
    of_replica.insert(of_replica.end(), of_rank.end() - servers(), of_rank.end());
    return of_replica;
  }
};

// Ranks and hosts as the options ask for them, and the config for so many. ConfigError where they do not fit.
void place_ranks(Check& check, const CheckOptions& options);

// Memory of the ranks of the fullest host. `memory`: of the workers, by place in their group.
std::vector<Footprint> fullest_host(const Check& check, const std::vector<Footprint>& memory);

}  // namespace echelon::cli
