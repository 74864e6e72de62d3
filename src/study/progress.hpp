// SPDX-License-Identifier: Apache-2.0
// The table of a study in progress, printed line by line as cells end, with the remaining time.
#pragma once

#include <string>
#include <vector>

#include "study/cell_record.hpp"
#include "study/study.hpp"

namespace echelon::inline study {

class StudyProgress {
 public:
  // For a search, `cells` are those proposed so far. Both arguments must outlive this object.
  StudyProgress(const StudyPlan& study, const std::vector<StudyCell>& cells) : study_(study), cells_(cells) {}

  // Number of cells of the whole study; for a search, of its trials.
  std::size_t total() const;

  // "study     lenet: 24 cells, 1 to 8 ranks; 6 finished before"
  std::string begin_text(const std::vector<CellRecord>& records) const;
  // The column headings of line_text.
  std::string heading() const;
  // The line of a cell that has just ended: the number of cells that are over, its figures from summary.json or the
  // reason why it has none, and the time that the remaining cells will take.
  std::string line_text(const StudyCell& cell, const CellRecord& record, const std::vector<CellRecord>& all) const;
  // Seconds of the cells that are not over, run one after another, from the mean time of cells of the same size. NaN if
  // no cell has ended yet, or if halving decides how long trials train.
  double seconds_left(const std::vector<CellRecord>& records) const;

 private:
  std::size_t text_width() const;

  const StudyPlan& study_;
  const std::vector<StudyCell>& cells_;
};

}  // namespace echelon::inline study
