// SPDX-License-Identifier: Apache-2.0
// The state of a study in progress, as the first rank of those that run its cells sees it: which cell is next, the
// outcome of each cell, and the lines printed meanwhile.
//
// Several ledgers share one study: those of lanes in one launch, and those of several launches. They communicate only
// through the study's folder. Whoever runs a cell holds the lock of the cell's folder, and whoever chooses the next
// cell holds the lock of the study's folder (job/run_lock.hpp). So a cell whose lock is free and that is not over has
// to be run. If its lock is free but its record says that it is running, its launch has died (study/deaths.hpp).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/run_lock.hpp"
#include "study/cell_record.hpp"
#include "study/deaths.hpp"
#include "study/progress.hpp"
#include "study/search.hpp"
#include "study/study.hpp"

namespace echelon::cli {

// Decides from the results of its cells whether a study needs no more rounds. Called once all cells of a look are over.
using Decided = std::function<bool(const StudyPlan&, const std::vector<StudyCell>&, const std::vector<CellRecord>&)>;

class StudyLedger {
 public:
  struct Next {
    std::optional<StudyCell> cell = {};  // the cell to run, up to its next rung
    bool wait = false;                   // the outcome of cells that others run may decide what is next
  };

  // `launch`: a name that no other launch has, the same for all lanes of one launch. `hosts`: the hosts of the ranks
  // that run this ledger's cells, one per rank. `beside`: ledgers whose cells share the host at the same time. Reads
  // the results of earlier launches; throws DataError if they cannot be read.
  StudyLedger(const StudyPlan& study, std::string launch, std::vector<int> hosts, int beside = 1, Decided decided = {});

  // Prints the plan of the study.
  void begin() const;
  // Returns the next cell to run and marks it as begun. No cell and no `wait`: nothing is left for this ledger, or the
  // budget is used up. Cells that cannot run are left out, with the reason.
  Next next();
  // Records that the cell returned by `next` has ended with this exit code on its ranks, after `seconds`.
  void end(int code, double seconds);

  // Reads the progress that other ledgers have recorded.
  void refresh();
  // Removes the files that study.keep does not keep, for cells that are over and will not continue.
  void tidy() const;
  const std::vector<StudyCell>& cells() const { return search_ ? search_->cells() : cells_; }
  const std::vector<CellRecord>& records() const { return records_; }
  // Total steps of the run that `next` returned; 0: not known.
  std::int64_t steps() const { return steps_; }
  const std::optional<StudySearch>& search() const { return search_; }
  std::size_t left() const;  // cells that are not over, and trials that will continue
  bool any_failed() const;
  // Rounds to run: all, or as many as it takes to decide the verdict.
  int open_rounds() const;

 private:
  double seconds() const;
  bool claim(std::size_t i);
  void settle_deaths();
  CellDeath death_of(std::size_t i);
  bool begin_cell(std::size_t i);
  bool begin_what_was_left();
  Promotion promotion() const;
  bool can_run(std::size_t i);
  void close(std::size_t i, CellState state, int code, const std::string& reason);
  StudyCell cell_now(std::size_t i) const;
  bool is_open(std::size_t i) const { return search_ || cells_[i].repeat <= open_rounds(); }
  std::string newest_attempt(std::size_t i) const;
  std::int64_t newest_step(std::size_t i) const;  // step of its newest checkpoint; 0: none
  void save(std::size_t i);

  const StudyPlan& study_;
  std::vector<StudyCell> cells_;    // cells of a study that does not search
  std::vector<std::size_t> order_;  // order in which the cells run
  std::optional<StudySearch> search_;
  std::int64_t steps_ = 0;
  std::vector<CellRecord> records_;
  std::size_t current_ = 0;
  std::unique_ptr<RunLock> claimed_;  // lock of the current cell
  bool held_back_ = false;            // a cell waits for another that may kill the launch
  const std::string launch_;
  const std::vector<int> hosts_;
  const int beside_;
  const Decided decided_;
  mutable std::map<int, bool> looked_;  // by look: whether the study was decided
};

}  // namespace echelon::cli
