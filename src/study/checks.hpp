// What goes together in [study], beyond the value of one key.
#pragma once

#include <string>

#include "study/study.hpp"

namespace echelon::inline study {

// Whether a set of a variant, an axis or an environment is one of the experiment's config, not of the cell
// (study.placement) or an option of a verb (--sizes).
bool is_config_set(const std::string& set);

// ConfigError for the first combination that makes no sense. `base`: base_config of the study.
void check_study(const StudyPlan& study, const Config& base);

// Of a study that searches: its rungs, and as many trials as a grid has at most.
void settle_search(StudyPlan& study, const Config& base);

}  // namespace echelon::inline study
