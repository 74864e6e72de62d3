// SPDX-License-Identifier: Apache-2.0
// Finds cells that are the same run under several names: the same effective config on as many ranks. They run once.
//
// On one rank a split model, the network and, with synchronous training, all of [exchange] have no effect.
#pragma once

#include <string>

#include "study/study.hpp"

namespace echelon::inline study {

// Returns the settings that take effect in a cell as text: equal for cells that are the same run, seed included. Reads
// the experiment. A cell whose config is refused equals only itself.
std::string effect_of(const StudyCell& cell);

// Whether the cell would split the model but does not, because it has only one rank.
bool is_split_on_one_rank(const StudyCell& cell);

// Returns a name for settings that share a cell: the words that all have, without those of `dropped`. If their variants
// differ, it contains the names of all, or "one worker" on one rank.
std::string common_name(const std::vector<const StudyChoice*>& settings, int ranks, const StudyPlan& study,
                        bool without_split);

}  // namespace echelon::inline study
