// SPDX-License-Identifier: Apache-2.0
// Collects the results of a study's cells for its report: every repetition with its outcome, and the machine's state.
#pragma once

#include <vector>

#include "report/evidence.hpp"
#include "study/cell_record.hpp"
#include "study/control.hpp"
#include "study/study.hpp"

namespace echelon::cli {

// Returns all cells with an outcome (finished, diverged, failed) in the order of the file, once for each environment
// that contains it. `records`: one per cell.
std::vector<LabelledRun> runs_of(const std::vector<StudyCell>& cells, const std::vector<CellRecord>& records);

// Returns one entry per round, from the records of the control cells.
std::vector<RoundControl> rounds_of(const StudyPlan& study, const std::vector<StudyCell>& cells,
                                    const std::vector<CellRecord>& records);

std::vector<CellRecord> cell_records(const StudyPlan& study, const std::vector<StudyCell>& cells);

// Includes the rates of the rounds' control cells. Reads the experiment.
Evidence evidence_of(const StudyPlan& study, const std::vector<StudyCell>& cells,
                     const std::vector<CellRecord>& records);

// Whether a study with repeats = "until decided" needs no more rounds, by the rules of the verdict
// (report/verdict.hpp).
bool is_decided(const StudyPlan& study, const std::vector<StudyCell>& cells, const std::vector<CellRecord>& records);

}  // namespace echelon::cli
