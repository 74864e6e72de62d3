// SPDX-License-Identifier: Apache-2.0
// Chooses which ranks of a launch take part in a cell.
#pragma once

#include <vector>

#include "study/study.hpp"

namespace echelon::inline study {

// Returns `ranks` ranks of the launch, in the order that they have in the cell; rank 0 comes first. `hosts`: host of
// each rank of the launch. compact: fills the host of rank 0, then the hosts with the most ranks, so that as few hosts
// as possible take part; spread: takes one rank of each host in turn. `over`: number of hosts, with equally many ranks
// on each, give or take one; 0: as many as needed. Throws ConfigError if the launch does not have them.
std::vector<int> members_of(const std::vector<int>& hosts, int ranks, CellPlacement placement, int over = 0);

}  // namespace echelon::inline study
