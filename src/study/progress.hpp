// The table of a study that is under way, line by line as cells end, and what is left.
#pragma once

#include <string>
#include <vector>

#include "study/cell_record.hpp"
#include "study/study.hpp"

namespace echelon::inline study {

class StudyProgress {
 public:
  // `cells`: of a search, those that were proposed. Both outlive this.
  StudyProgress(const StudyPlan& study, const std::vector<StudyCell>& cells) : study_(study), cells_(cells) {}

  // Cells of the whole study; of a search, its trials.
  std::size_t total() const;

  // "study     lenet: 24 cells, 1 to 8 ranks; 6 finished before"
  std::string begin_text(const std::vector<CellRecord>& records) const;
  // Headings of the columns of line_text.
  std::string heading() const;
  // A cell that has just ended: how many of all are over, its figures from summary.json, or why it has none; then what
  // the remaining cells will take.
  std::string line_text(const StudyCell& cell, const CellRecord& record, const std::vector<CellRecord>& all) const;
  // Seconds of the cells that are not over, one after another, by the mean of those of their size; NaN where none has
  // ended yet, and where halving decides how long trials train.
  double seconds_left(const std::vector<CellRecord>& records) const;

 private:
  std::size_t text_width() const;

  const StudyPlan& study_;
  const std::vector<StudyCell>& cells_;
};

}  // namespace echelon::inline study
