// A study that is under way, as the first rank of those that run its cells sees it: which cell is next, what became of
// it, and what is printed meanwhile.
//
// Several ledgers share one study: of ranks that run cells side by side in one launch, and of several launches. They
// meet in the study's folder alone: whoever runs a cell holds the lock of the cell's folder, and whoever decides which
// is next that of the study's (job/run_lock.hpp), so that a cell whose lock is free and that is not over is to be run.
// One whose lock is free and whose record says that it runs has died with its launch (study/deaths.hpp).
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

// Whether a study needs no more rounds, by what its cells have left: asked once all cells of a look are over.
using Decided = std::function<bool(const StudyPlan&, const std::vector<StudyCell>&, const std::vector<CellRecord>&)>;

class StudyLedger {
 public:
  struct Next {
    std::optional<StudyCell> cell = {};  // to run, up to the next rung
    bool wait = false;                   // what others run may decide what is next
  };

  // `launch`: a name that no other launch has, the same for all lanes of one. `hosts`: by rank, of the ranks on which
  // this ledger's cells run. `beside`: ledgers whose cells run on the same host at the same time. Reads what earlier
  // launches have left; DataError where that cannot be read.
  StudyLedger(const StudyPlan& study, std::string launch, std::vector<int> hosts, int beside = 1, Decided decided = {});

  // Prints what is to come.
  void begin() const;
  // The cell to run next, which counts as begun; none without `wait`: nothing is left for this ledger, or the budget is
  // used up. Cells that cannot be run are left out, with the reason.
  Next next();
  // The cell that `next` gave has ended with this exit code on its ranks, after so many seconds.
  void end(int code, double seconds);

  // Reads what other ledgers have done.
  void refresh();
  // Removes what study.keep does not keep of cells that are over and will not go on.
  void tidy() const;
  const std::vector<StudyCell>& cells() const { return search_ ? search_->cells() : cells_; }
  const std::vector<CellRecord>& records() const { return records_; }
  // Of the run that `next` gave: its steps in all; 0: not known.
  std::int64_t steps() const { return steps_; }
  const std::optional<StudySearch>& search() const { return search_; }
  std::size_t left() const;  // cells that are not over, and trials that are to go on
  bool any_failed() const;
  // Rounds that are run: all, or as many as it takes until the verdict is decided.
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
  std::int64_t newest_step(std::size_t i) const;  // of its newest checkpoint; 0: none
  void save(std::size_t i);

  const StudyPlan& study_;
  std::vector<StudyCell> cells_;    // of a study that does not search
  std::vector<std::size_t> order_;  // in which they are run
  std::optional<StudySearch> search_;
  std::int64_t steps_ = 0;
  std::vector<CellRecord> records_;
  std::size_t current_ = 0;
  std::unique_ptr<RunLock> claimed_;  // of the current cell
  bool held_back_ = false;            // a cell waits until another one is over that may take the launch with it
  const std::string launch_;
  const std::vector<int> hosts_;
  const int beside_;
  const Decided decided_;
  mutable std::map<int, bool> looked_;  // by look: whether it was decided
};

}  // namespace echelon::cli
