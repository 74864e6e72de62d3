// Which ranks of a launch take part in a cell.
#pragma once

#include <vector>

#include "study/study.hpp"

namespace echelon::inline study {

// `ranks` of the launch, in the order that they have in the cell; rank 0 is the first. `hosts`: by rank of the launch.
// compact: the host of rank 0, then those with most ranks, so that as few hosts as possible take part; spread: one rank
// of each host in turns. `over`: as many hosts, with equally many ranks each, up to one; 0: as many as it takes.
// ConfigError where the launch has none like that.
std::vector<int> members_of(const std::vector<int>& hosts, int ranks, CellPlacement placement, int over = 0);

}  // namespace echelon::inline study
