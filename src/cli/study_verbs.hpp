// Cells of a study that are no trainings: measurements, plans, supervised runs, whole searches. Their figures are
// numbers by name, in <cell>/figures.json, and the study's table has each over the rounds.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "comm/transport.hpp"
#include "study/study.hpp"

namespace echelon::cli {

using CellFigures = std::map<std::string, double>;

// Whether a cell leaves the record of a training in its folder: those of `train` and `run`.
bool leaves_a_run(const StudyPlan& study, const StudyCell& cell);

// `bench allreduce` between the ranks of the cell, in these processes. All ranks; its exit code.
int run_allreduce_cell(const StudyPlan& study, const StudyCell& cell, std::unique_ptr<Transport> part);

// Runs another verb in a process of its own, with the file, sets and options of the cell; for `supervise` that is
// `echelon supervise [options] -- mpirun -n RANKS echelon train ..` on this host. Returns its exit code, or that of a
// stop by a signal.
int run_apart(const StudyPlan& study, const StudyCell& cell);

// Of a search that was a cell: its best figure, and the best one after each number of trials.
void write_search_figures(const StudyPlan& search, const std::string& folder);

// Of a cell; empty where it has none. DataError where they cannot be read.
CellFigures read_figures(const std::string& folder);

// Why a cell without a record ended in an error: the last line that it printed.
std::string failure_in(const std::string& folder);

}  // namespace echelon::cli
