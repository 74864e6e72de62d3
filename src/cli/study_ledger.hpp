// Rank 0's side of a study that is under way: which cell is next, what became of it, and what is printed meanwhile.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "study/cell_record.hpp"
#include "study/progress.hpp"
#include "study/search.hpp"
#include "study/study.hpp"

namespace echelon::cli {

// Where a cell leaves its files: <study>/<cell>.
std::string folder_of(const StudyPlan& study, const StudyCell& cell);

class StudyLedger {
 public:
  // `hosts`: of the launch, by rank. Reads what earlier launches have left; DataError where that cannot be read.
  // `goal`: whose figure a search looks for.
  StudyLedger(const StudyPlan& study, const GoalConfig& goal, std::vector<int> hosts);

  // Prints what is to come.
  void begin() const;
  // The cell to run next, which counts as begun; null: none is left, or the budget is used up. Cells that cannot be run
  // are left out, with the reason.
  const StudyCell* next();
  // The cell that `next` gave has ended with this exit code on its ranks, after so many seconds.
  void end(int code, double seconds);

  const std::vector<StudyCell>& cells() const { return cells_; }  // of a search: those that were proposed
  const std::optional<StudySearch>& search() const { return search_; }
  std::size_t left() const;  // cells that are not over
  bool any_failed() const;

 private:
  double seconds() const;
  bool propose();
  bool can_run(std::size_t i);
  void close(std::size_t i, CellState state, int code, const std::string& reason);

  const StudyPlan& study_;
  const GoalConfig goal_;
  std::optional<StudySearch> search_;
  std::vector<StudyCell> cells_;
  std::size_t current_ = 0;
  const std::vector<int> hosts_;
  std::vector<CellRecord> records_;
  StudyProgress progress_;
};

// Prints a line now and then for as long as it lives, while a cell runs.
class StudyHeartbeat {
 public:
  explicit StudyHeartbeat(const StudyCell& cell);
  ~StudyHeartbeat();
  StudyHeartbeat(const StudyHeartbeat&) = delete;

 private:
  void beat();

  const StudyCell& cell_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace echelon::cli
