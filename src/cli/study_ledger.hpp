// Rank 0's side of a study that is under way: which cell is next, what became of it, and what is printed meanwhile.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "study/cell_record.hpp"
#include "study/progress.hpp"
#include "study/study.hpp"

namespace echelon::cli {

// Where a cell leaves its files: <study>/<cell>.
std::string folder_of(const StudyPlan& study, const StudyCell& cell);

class StudyLedger {
 public:
  // `hosts`: of the launch, by rank. Reads what earlier launches have left; DataError where that cannot be read.
  StudyLedger(const StudyPlan& study, std::vector<StudyCell> cells, std::vector<int> hosts);

  // Prints what is to come.
  void begin() const;
  // Index of the cell to run next, which counts as begun; -1: none is left, or the budget is used up. Cells that cannot
  // be run are left out, with the reason.
  int next();
  // StudyCell i has ended with this exit code on its ranks, after so many seconds.
  void end(std::size_t i, int code, double seconds);

  std::size_t left() const;  // cells that are not over
  bool any_failed() const;

 private:
  double seconds() const;
  bool can_run(std::size_t i);
  void close(std::size_t i, CellState state, int code, const std::string& reason);

  const StudyPlan& study_;
  const std::vector<StudyCell> cells_;
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
