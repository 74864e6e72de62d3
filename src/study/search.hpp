// The cells of a study that searches: proposed one after another, each from what is known of the trials before it.
//
// <study>/trials.json holds the trials that were proposed, in their order, so that a search that is started again, or
// that several launches share, goes on with them. It begins anew where the ranges have changed; what was run stays.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/cell_record.hpp"
#include "study/search/halving.hpp"
#include "study/search/proposer.hpp"
#include "study/study.hpp"

namespace echelon::inline study {

// What a search varies: axes are choices, ranges numbers.
std::vector<SearchRange> ranges_of(const StudyPlan& study);
Proposer proposer_of(const StudyPlan& study);

// A trial's figures by rung of the study, to be minimised; those of a cell that failed end with NaN.
TrialRungs trial_rungs(const StudyPlan& study, const CellRecord& record);

class StudySearch {
 public:
  // Of a plan that searches, with the trials that were proposed so far. DataError where they cannot be read.
  explicit StudySearch(const StudyPlan& study);

  // Reads the trials that others have proposed meanwhile.
  void read();
  // Adds a trial, by the trials' figures on the first rung, and writes the file; false after study.trials. `records`:
  // by trial. One process at a time.
  bool propose(const std::vector<CellRecord>& records);

  const std::vector<StudyCell>& cells() const { return cells_; }  // of the trials, in their order
  // By range: the share of the figure's variation that it explains by itself, by a Gaussian process over all trials on
  // the first rung; empty for fewer than 4 that finished.
  std::vector<double> what_mattered(const std::vector<CellRecord>& records) const;
  const std::vector<SearchRange>& ranges() const { return proposer_.ranges(); }
  // Of a trial, by range, as written behind "=".
  std::string value(std::size_t trial, std::size_t range) const { return ranges()[range].value(points_[trial][range]); }

 private:
  std::vector<Trial> trials(const std::vector<CellRecord>& records) const;
  void add(Point point);

  const StudyPlan& study_;
  Proposer proposer_;
  std::vector<Point> points_;
  std::vector<StudyCell> cells_;
};

}  // namespace echelon::inline study
