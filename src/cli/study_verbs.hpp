// SPDX-License-Identifier: Apache-2.0
// Cells of a study that do not train: measurements, plans, supervised runs, whole searches. Their figures are named
// numbers in <cell>/figures.json; the study's table shows each of them over the rounds.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "comm/transport.hpp"
#include "study/study.hpp"

namespace echelon::cli {

using CellFigures = std::map<std::string, double>;

// Whether a cell leaves the record of a training in its folder, as those of `train` and `run` do.
bool leaves_a_run(const StudyPlan& study, const StudyCell& cell);

// Runs `bench allreduce` between the ranks of the cell, in these processes. Called by all ranks; returns the exit code.
int run_allreduce_cell(const StudyPlan& study, const StudyCell& cell, std::unique_ptr<Transport> part);

// Runs another verb in a separate process, with the file, sets and options of the cell. For `supervise` the command is
// `echelon supervise [options] -- mpirun -n RANKS echelon train ..` on this host. Returns its exit code, or that of a
// stop by a signal.
int run_apart(const StudyPlan& study, const StudyCell& cell);

// Writes the figures of a search that was a cell: its best figure, and the best one after each number of trials.
void write_search_figures(const StudyPlan& search, const std::string& folder);

// Reads the figures of a cell; empty if it has none. Throws DataError if they cannot be read.
CellFigures read_figures(const std::string& folder);

// Returns why a cell without a record ended in an error: the last line that it printed.
std::string failure_in(const std::string& folder);

}  // namespace echelon::cli
