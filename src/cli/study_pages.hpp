// What a study prints and writes without running anything.
#pragma once

#include <vector>

#include "study/search.hpp"
#include "study/study.hpp"

namespace echelon::cli {

// Every cell, its state and folder; of a search, the trials so far.
void print_cells(const StudyPlan& study);

// Prints the verdict with its evidence and writes study.md, .html, .json and .csv, and report.md, .csv and .json as
// `echelon report` does; of a search, its best trials, study.md and study.csv. Whether all goals are met.
bool print_study(const StudyPlan& study);

// The same of a study.json alone: the verdict is made anew from its repetitions, and study.md, .html, .json and .csv
// are written into the folder.
bool print_study_file(const std::string& path, const std::string& folder);

// Of a search under way, by its trials so far; `records`: by trial. Whether the best one meets the goal.
bool print_search(const StudyPlan& study, const StudySearch& search, const std::vector<CellRecord>& records);

// Writes the Slurm jobs of the study, `jobs` for each size, and submits them or prints the commands that do.
// EnvironmentError where sbatch fails.
void write_jobs(const StudyPlan& study, int jobs, bool submit);

}  // namespace echelon::cli
