// SPDX-License-Identifier: Apache-2.0
// Proposes the next trial of a search. It depends only on the trials so far, so a restarted search proposes the same.
//
//   grid       every combination in a fixed order; each range has `grid_steps` values
//   random     points drawn uniformly by seed (Bergstra and Bengio, JMLR 2012)
//   bayesian   2 d + 2 random points first; then the point with the greatest expected improvement over the best trial
//              under a Gaussian process (Jones, Schonlau and Welch: Efficient global optimization, 1998)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "study/search/range.hpp"

namespace echelon::inline study {

enum class SearchMethod : std::uint8_t { grid, random, bayesian };

struct Trial {
  Point point;
  double value = 0;      // to be minimised; not finite: the trial failed, and counts as the worst
  bool pending = false;  // in progress: counts as the mean of the known values, so that the next proposal differs
};

class Proposer {
 public:
  Proposer(SearchMethod method, std::vector<SearchRange> ranges, std::uint64_t seed, int grid_steps = 4);

  // Returns none if the grid is used up. Points are settled: their coordinates stand for the values of the trial.
  std::optional<Point> next(const std::vector<Trial>& trials) const;
  // Number of points of the grid.
  std::size_t grid_size() const;
  const std::vector<SearchRange>& ranges() const { return ranges_; }

 private:
  Point settled(Point point) const;
  Point of_grid(std::size_t index) const;
  Point most_promising(const std::vector<Trial>& trials) const;

  SearchMethod method_;
  std::vector<SearchRange> ranges_;
  std::uint64_t seed_;
  int grid_steps_;
};

// Returns the mean of max(0, best - value) of a trial with this prediction.
double expected_improvement(double mean, double deviation, double best);
// Returns the trials' values. A failed trial gets the worst of the others, a trial in progress their mean (the constant
// liar of Ginsbourger, Le Riche and Carraro: Kriging is well-suited to parallelize optimization, 2010).
std::vector<double> known_values(const std::vector<Trial>& trials);

}  // namespace echelon::inline study
