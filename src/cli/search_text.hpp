// What a search came to: its best trials, and which keys mattered.
#pragma once

#include <string>
#include <vector>

#include "study/cell_record.hpp"
#include "study/search.hpp"

namespace echelon::cli {

// The goal's figure of a finished cell, to be minimised (accuracies are negated); NaN where it has none.
double search_value(const GoalConfig& goal, const CellRecord& record);

// All trials so far, proposed again in their order; the search is then ready for the next.
std::vector<StudyCell> replay_search(StudySearch& search, const StudyPlan& study, const GoalConfig& goal);

std::string search_text(const StudySearch& search, const std::vector<StudyCell>& cells, const StudyPlan& study,
                        const GoalConfig& goal);
std::string search_markdown(const StudySearch& search, const std::vector<StudyCell>& cells, const StudyPlan& study,
                            const GoalConfig& goal);

}  // namespace echelon::cli
