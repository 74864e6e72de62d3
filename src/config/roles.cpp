// SPDX-License-Identifier: Apache-2.0
#include "config/roles.hpp"

#include <fmt/format.h>

#include "config/refuse.hpp"

namespace echelon::inline config {

std::string_view name_of(Role role) {
  switch (role) {
    case Role::worker: return "worker";
    case Role::server: return "server";
  }
  return "";
}

Roles roles_of(const Config& config, int ranks) {
  const std::int64_t servers = config.exchange.server.ranks;
  if (servers >= ranks)
    refuse(config, "exchange.server.ranks",
           fmt::format("exchange.server.ranks = {} leaves no worker among {} rank{}; {}", servers, ranks,
                       ranks == 1 ? "" : "s",
                       ranks > 1 ? fmt::format("nearest valid: {}", ranks - 1) : "start more ranks, or set it to 0"));
  const Roles roles{.workers = ranks - static_cast<int>(servers), .servers = static_cast<int>(servers)};
  if (config.exchange.backup.of(roles.workers) >= roles.workers && !config.exchange.fewer_workers)
    refuse(
        config, "exchange.backup.replicas",
        fmt::format("exchange.backup.replicas = {} leaves no replica of {} for a step to wait for; nearest valid: {}",
                    config.exchange.backup.replicas, roles.workers, roles.workers - 1));
  return roles;
}

}  // namespace echelon::inline config
