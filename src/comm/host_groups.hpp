// Ranks of one machine that stand for several hosts (Transport::with_hosts).
#pragma once

#include <string>
#include <vector>

namespace echelon::inline comm {

// By rank: 0, 0, 1, 1 for 4 ranks, 2 a host. The last host may have fewer.
std::vector<int> groups_of_ranks(int ranks, int ranks_per_host);

// The name of each host: its machine's and a number there, "node7/0", "node7/1". `hosts` and `machines`: by rank.
// EnvironmentError where ranks of one host are on several machines.
std::vector<std::string> names_of_groups(const std::vector<int>& hosts, const std::vector<int>& machines,
                                         const std::vector<std::string>& machine_names);

}  // namespace echelon::inline comm
