// SPDX-License-Identifier: Apache-2.0
// Groups of ranks of one machine that act as several hosts (Transport::with_hosts).
#pragma once

#include <string>
#include <vector>

namespace echelon::inline comm {

// The host of each rank: 0, 0, 1, 1 for 4 ranks, 2 per host. The last host may have fewer ranks.
std::vector<int> groups_of_ranks(int ranks, int ranks_per_host);

// The name of each host, which is that of its machine with a number: "node7/0", "node7/1". `hosts` and `machines` are
// by rank. EnvironmentError if ranks of one host are on several machines.
std::vector<std::string> names_of_groups(const std::vector<int>& hosts, const std::vector<int>& machines,
                                         const std::vector<std::string>& machine_names);

}  // namespace echelon::inline comm
