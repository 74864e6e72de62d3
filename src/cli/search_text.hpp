// What a search came to: its best trials, and which keys mattered. `records`: by trial.
#pragma once

#include <string>
#include <vector>

#include "study/cell_record.hpp"
#include "study/search.hpp"

namespace echelon::cli {

std::string search_text(const StudySearch& search, const std::vector<CellRecord>& records, const StudyPlan& study);
// Every trial, in their order: its figure and epochs (empty: none yet), state, seconds, values of the keys, folder.
std::string search_csv(const StudySearch& search, const std::vector<CellRecord>& records, const StudyPlan& study);
std::string search_markdown(const StudySearch& search, const std::vector<CellRecord>& records, const StudyPlan& study);

}  // namespace echelon::cli
