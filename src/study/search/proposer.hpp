// The next trial of a search, as a function of the trials so far: a search that is started again proposes the same.
//
//   grid      every combination in a fixed order; ranges in as many steps as `grid_steps`
//   random    points drawn evenly by seed (Bergstra and Bengio, JMLR 2012)
//   bayesian  after 2 d + 2 random ones, the point of the greatest expected improvement over the best trial under a
//             Gaussian process (Jones, Schonlau and Welch: Efficient global optimization, 1998)
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
  bool pending = false;  // under way: counts as the mean of those that are known, so that the next one is another
};

class Proposer {
 public:
  Proposer(SearchMethod method, std::vector<SearchRange> ranges, std::uint64_t seed, int grid_steps = 4);

  // None where a grid is used up. Points are settled: their values are those of the trial.
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

// Of a trial with this prediction: the mean of max(0, best - value).
double expected_improvement(double mean, double deviation, double best);
// The trials' values with those that failed at the worst of the others, and those under way at their mean (the constant
// liar of Ginsbourger, Le Riche and Carraro: Kriging is well-suited to parallelize optimization, 2010).
std::vector<double> known_values(const std::vector<Trial>& trials);

}  // namespace echelon::inline study
