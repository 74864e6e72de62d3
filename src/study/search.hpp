// The cells of a study that searches: proposed one after another, each from what the trials before it came to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/search/proposer.hpp"
#include "study/study.hpp"

namespace echelon::inline study {

class StudySearch {
 public:
  // Of a plan that searches. Axes are choices, ranges numbers.
  explicit StudySearch(const StudyPlan& study);

  // The next trial; none after study.trials, or where a grid is used up. Each must be learned from before the next.
  std::optional<StudyCell> propose();
  // What the newest trial came to, to be minimised; not finite: it failed.
  void learn(double value);

  const std::vector<Trial>& trials() const { return trials_; }
  std::size_t size() const { return proposer_.grid_size(); }  // of a grid
  // By range: the share of the figure's variation that it explains by itself, by a Gaussian process over all trials;
  // empty for fewer than 4 that finished.
  std::vector<double> what_mattered() const;
  const std::vector<SearchRange>& ranges() const { return proposer_.ranges(); }

 private:
  const StudyPlan& study_;
  Proposer proposer_;
  std::vector<Trial> trials_;
  Point proposed_;
};

}  // namespace echelon::inline study
