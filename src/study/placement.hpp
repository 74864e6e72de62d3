// Which ranks of a launch take part in a cell.
#pragma once

#include <vector>

#include "study/study.hpp"

namespace echelon::inline study {

// `ranks` of the launch, in the order that they have in the cell; rank 0 is the first. `hosts`: by rank of the launch.
// compact: the host of rank 0, then those with most ranks, so that as few hosts as possible take part; spread: one rank
// of each host in turns.
std::vector<int> members_of(const std::vector<int>& hosts, int ranks, CellPlacement placement);

}  // namespace echelon::inline study
