// The table of a study whose cells are no trainings: their figures (study_verbs.hpp) over the rounds.
#pragma once

#include <string>
#include <vector>

#include "study/cell_record.hpp"
#include "study/study.hpp"

namespace echelon::cli {

// Whether the cells of the study have figures instead of a training's record.
bool has_figures(const StudyPlan& study);

// One row a setting, environment and figure, with the median and the range over the rounds; `most`: rows that are
// shown, of each setting.
std::string figures_text(const StudyPlan& study, const std::vector<StudyCell>& cells,
                         const std::vector<CellRecord>& records, std::size_t most);
// Every value: ranks, setting, environment, round, seed, outcome, code, figure, value.
std::string figures_csv(const StudyPlan& study, const std::vector<StudyCell>& cells,
                        const std::vector<CellRecord>& records);

// Prints the table and writes study.md and study.csv.
void print_figures(const StudyPlan& study);

}  // namespace echelon::cli
