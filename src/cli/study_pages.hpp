// SPDX-License-Identifier: Apache-2.0
// The output of a study that needs no run: printed text and written pages.
#pragma once

#include <vector>

#include "study/search.hpp"
#include "study/study.hpp"

namespace echelon::cli {

// Prints every cell with its state and folder; for a search, the trials so far.
void print_cells(const StudyPlan& study);

// Prints the verdict with its evidence and writes study.md, .html, .json, .csv and the files of `echelon report`. For a
// search, prints its best trials and writes study.md and study.csv. Returns whether all goals are met.
bool print_study(const StudyPlan& study);

// The same from a study.json alone: judges its repetitions again and writes study.md, .html, .json and .csv into the
// folder.
bool print_study_file(const std::string& path, const std::string& folder);

// The same for a search in progress; `records`: one per trial so far. Returns whether the best one meets the goal.
bool print_search(const StudyPlan& study, const StudySearch& search, const std::vector<CellRecord>& records);

// Writes the Slurm jobs of the study, `jobs` per size, and submits them or prints the commands that do. Throws
// EnvironmentError if sbatch fails.
void write_jobs(const StudyPlan& study, int jobs, bool submit);

}  // namespace echelon::cli
