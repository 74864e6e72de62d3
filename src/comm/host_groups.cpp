// SPDX-License-Identifier: Apache-2.0
#include "comm/host_groups.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace echelon::inline comm {

std::vector<int> groups_of_ranks(int ranks, int ranks_per_host) {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank / ranks_per_host);
  return hosts;
}

std::vector<std::string> names_of_groups(const std::vector<int>& hosts, const std::vector<int>& machines,
                                         const std::vector<std::string>& machine_names) {
  std::vector<std::string> names;
  std::vector<int> groups(machine_names.size()), machine_of_host;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto host = static_cast<std::size_t>(hosts[rank]), machine = static_cast<std::size_t>(machines[rank]);
    if (host == names.size()) {
      names.push_back(fmt::format("{}/{}", machine_names[machine], groups[machine]++));
      machine_of_host.push_back(machines[rank]);
    }
    if (machine_of_host[host] != machines[rank])
      throw EnvironmentError(
          fmt::format("ranks of one host of [network] share a card, but rank {} is on {} and others of its host are on "
                      "{}; set network.ranks_per_host to a divisor of the ranks of each machine, for example 1",
                      rank, machine_names[machine], machine_names[static_cast<std::size_t>(machine_of_host[host])]));
  }
  return names;
}

}  // namespace echelon::inline comm
