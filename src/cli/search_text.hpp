// SPDX-License-Identifier: Apache-2.0
// The results of a search: its best trials, and which keys mattered. `records` has one entry per trial.
#pragma once

#include <string>
#include <vector>

#include "study/cell_record.hpp"
#include "study/search.hpp"

namespace echelon::cli {

std::string search_text(const StudySearch& search, const std::vector<CellRecord>& records, const StudyPlan& study);
// One line per trial, in order: figure and epochs (empty: none yet), state, seconds, values of the keys, folder.
std::string search_csv(const StudySearch& search, const std::vector<CellRecord>& records, const StudyPlan& study);
std::string search_markdown(const StudySearch& search, const std::vector<CellRecord>& records, const StudyPlan& study);

}  // namespace echelon::cli
