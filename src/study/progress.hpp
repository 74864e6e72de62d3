// The table of a study that is under way, line by line as cells end, and what is left.
#pragma once

#include <string>
#include <vector>

#include "study/cell_record.hpp"
#include "study/study.hpp"

namespace echelon::inline study {

class StudyProgress {
 public:
  // Looks at the cells whenever it is asked: those of a search grow.
  explicit StudyProgress(const std::vector<StudyCell>& cells) : cells_(cells) {}

  // Cells of the whole study; of a search, its trials.
  std::size_t total(const StudyPlan& study) const;

  // "study     lenet: 24 cells, 1 to 8 ranks; 6 finished before"
  std::string begin_text(const StudyPlan& study, const std::vector<CellRecord>& records) const;
  // Headings of the columns of line_text.
  std::string heading() const;
  // A cell that has just ended, the n-th of all (from 1): its figures from summary.json, or why it has
  // none; then what the remaining cells will take, by the mean of those of their size.
  std::string line_text(std::size_t nth, std::size_t total, const StudyCell& cell, const CellRecord& record,
                        const std::vector<CellRecord>& all) const;
  // Seconds of the cells that are not over; NaN where none has ended yet.
  double seconds_left(const std::vector<CellRecord>& records) const;

 private:
  std::size_t text_width() const;

  const std::vector<StudyCell>& cells_;
};

}  // namespace echelon::inline study
