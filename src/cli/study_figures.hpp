// SPDX-License-Identifier: Apache-2.0
// The table of a study whose cells do not train: their figures (study_verbs.hpp) over the rounds.
#pragma once

#include <string>
#include <vector>

#include "study/cell_record.hpp"
#include "study/study.hpp"

namespace echelon::cli {

// Whether the cells of the study have figures instead of the record of a training.
bool has_figures(const StudyPlan& study);

// Returns one row per setting, environment and figure, with the median and the range over the rounds. `most`: rows
// shown per setting.
std::string figures_text(const StudyPlan& study, const std::vector<StudyCell>& cells,
                         const std::vector<CellRecord>& records, std::size_t most);
// Returns every value with ranks, setting, environment, round, seed, outcome, code and figure.
std::string figures_csv(const StudyPlan& study, const std::vector<StudyCell>& cells,
                        const std::vector<CellRecord>& records);

// Prints the table and writes study.md and study.csv.
void print_figures(const StudyPlan& study);

}  // namespace echelon::cli
