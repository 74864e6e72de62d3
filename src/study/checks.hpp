// SPDX-License-Identifier: Apache-2.0
// Checks [study] beyond the value of a single key.
#pragma once

#include <string>

#include "study/study.hpp"

namespace echelon::inline study {

// Whether a set of a variant, an axis or an environment belongs to the experiment's config, not to the cell
// (study.placement) or to the options of a verb (--sizes).
bool is_config_set(const std::string& set);

// Throws ConfigError for the first combination that makes no sense. `base`: base_config of the study.
void check_study(const StudyPlan& study, const Config& base);

// Sets the rungs of a study that searches, and limits its trials to the size of the grid.
void settle_search(StudyPlan& study, const Config& base);

}  // namespace echelon::inline study
