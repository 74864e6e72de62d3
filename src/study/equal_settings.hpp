// Which cells are the same run under several names: the same config takes effect, on as many ranks. They are run once.
//
// On one rank the split of a model, the network, and with synchronous training all of [exchange] change nothing.
#pragma once

#include <string>

#include "study/study.hpp"

namespace echelon::inline study {

// What takes effect in a cell, as text: equal for cells that are the same run, seed included. Reads the experiment. A
// cell whose config is refused is equal to itself alone.
std::string effect_of(const StudyCell& cell);

// Whether the model of the cell would be split, and is not, because there is one rank.
bool is_split_on_one_rank(const StudyCell& cell);

// The name that settings share: words that all have, without those of `dropped`; where their variants differ, the names
// of all, or "one worker" on one rank.
std::string common_name(const std::vector<const StudyChoice*>& settings, int ranks, const StudyPlan& study,
                        bool without_split);

}  // namespace echelon::inline study
