// SPDX-License-Identifier: Apache-2.0
// The cells of a study that searches. They are proposed one after another, from the results of the trials before.
//
// <study>/trials.json lists the proposed trials in order, so that a search that is started again, or shared by several
// launches, continues with them. It starts anew if the ranges have changed; finished runs are kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/cell_record.hpp"
#include "study/search/halving.hpp"
#include "study/search/proposer.hpp"
#include "study/study.hpp"

namespace echelon::inline study {

// The keys that a search varies: axes as choices, ranges as numbers.
std::vector<SearchRange> ranges_of(const StudyPlan& study);
Proposer proposer_of(const StudyPlan& study);

// Returns a trial's figures by rung of the study, to be minimised. The list ends with NaN if the cell failed.
TrialRungs trial_rungs(const StudyPlan& study, const CellRecord& record);

class StudySearch {
 public:
  // `study` must search; the trials proposed so far are read. Throws DataError if they cannot be read.
  explicit StudySearch(const StudyPlan& study);

  // Reads the trials that others have proposed meanwhile.
  void read();
  // Adds a trial, based on the trials' figures on the first rung, and writes the file. Returns false after
  // study.trials. `records`: one per trial. One process at a time may call it.
  bool propose(const std::vector<CellRecord>& records);

  const std::vector<StudyCell>& cells() const { return cells_; }  // one per trial, in order
  // Returns the share of the variation of the figure that each range explains by itself, estimated by a Gaussian
  // process over all trials on the first rung. Empty if fewer than 4 trials finished.
  std::vector<double> what_mattered(const std::vector<CellRecord>& records) const;
  const std::vector<SearchRange>& ranges() const { return proposer_.ranges(); }
  // The value that the trial has for the range, as written after "=".
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
