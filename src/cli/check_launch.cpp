// SPDX-License-Identifier: Apache-2.0
#include "cli/check_launch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "run/resolve_split.hpp"

namespace echelon::cli {

void place_ranks(Check& check, const CheckOptions& options) {
  constexpr int kMostRanks = 65536;
  if (options.replicas != 0 && options.ranks != 0)
    throw ConfigError(
        "--replicas and --ranks exclude each other: --ranks counts all processes of a launch, servers and the ranks of "
        "split models included");
  const char* option = options.ranks != 0 ? "--ranks" : "--replicas";
  const int requested = options.ranks != 0 ? options.ranks : options.replicas;
  const int group = ranks_of_replica(check.config.parallel);
  if (requested < 0 || requested > kMostRanks || (options.ranks == 0 && requested > kMostRanks / group))
    throw ConfigError(
        fmt::format("{} {}: must be 1 to {}", option, requested, options.ranks != 0 ? kMostRanks : kMostRanks / group));
  check.ranks = options.ranks != 0
                    ? options.ranks
                    : std::max(1, options.replicas) * group + static_cast<int>(check.config.exchange.server.ranks);
  check.hosts = check.machines = options.hosts;
  if (check.hosts < 1 || check.hosts > check.ranks)
    throw ConfigError(fmt::format("--hosts {}: must be 1 to {} (the number of ranks)", check.hosts, check.ranks));
  check.config = config_for_ranks(std::move(check.config), check.ranks, check.notes);
  if (!check.config.network.rate.empty()) check.hosts = (check.ranks + check.ranks_a_host() - 1) / check.ranks_a_host();
  check_soft(check.config, check.ranks);
}

std::vector<Footprint> fullest_host(const Check& check, const std::vector<Footprint>& memory) {
  const Mesh& mesh = *check.mesh;
  const std::vector<int> hosts = check.machines_of_ranks();
  std::vector<std::vector<Footprint>> by_host(static_cast<std::size_t>(check.machines));
  for (int rank = 0; rank < check.ranks; ++rank) {
    const bool serves = rank >= check.workers();
    Footprint held = memory[static_cast<std::size_t>(serves ? 0 : mesh.index_in_group(mesh.coord(rank)))];
    if (serves) held.activations = held.scratch = held.evaluation = held.packed = held.uploads = 0;
    if (serves || mesh.coord(rank).replica > 0) held.checkpoint = 0;
    by_host[static_cast<std::size_t>(hosts[static_cast<std::size_t>(rank)])].push_back(held);
  }
  const auto total = [](const std::vector<Footprint>& host) {
    double bytes = 0;
    for (const Footprint& rank : host) bytes += rank.total() + rank.checkpoint;
    return bytes;
  };
  return *std::max_element(by_host.begin(), by_host.end(),
                           [&](const auto& a, const auto& b) { return total(a) < total(b); });
}

}  // namespace echelon::cli
