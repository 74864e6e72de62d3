// SPDX-License-Identifier: Apache-2.0
#include "study/search/proposer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/hash_rng.hpp"
#include "study/search/gaussian_process.hpp"

namespace echelon::inline study {
namespace {

constexpr int kCandidates = 1000, kNear = 600, kCentres = 10, kRefined = 6;

std::size_t steps_of(const SearchRange& range, int grid_steps) {
  if (!range.choices.empty()) return range.choices.size();
  const double values = range.whole ? range.high - range.low + 1 : std::numeric_limits<double>::infinity();
  return static_cast<std::size_t>(std::min<double>(grid_steps, values));
}

// The margin by which an improvement must exceed the best value: 0 in two of four trials, else a part of the deviation
// of all values, so that a search leaves a basin that it knows well (after Jones, 2001, section 4.3).
double margin(std::size_t trial, const std::vector<double>& values) {
  constexpr std::array<double, 4> kMargins = {0, 0.05, 0, 0.25};
  const double n = static_cast<double>(values.size()), mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double square = 0;
  for (const double value : values) square += (value - mean) * (value - mean);
  return kMargins[trial % kMargins.size()] * std::sqrt(square / n);
}

// Returns the index of the trial with which the search last restarted. After 4 d + 6 trials without an improvement it
// forgets the earlier trials, so that it can find another basin.
std::size_t newest_start(const std::vector<Trial>& trials, std::size_t dimensions) {
  const std::size_t patience = 4 * dimensions + 6;
  const double inf = std::numeric_limits<double>::infinity();
  std::size_t start = 0, improved = 0;
  double best = inf;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (i - improved >= patience && i - start >= 2 * patience) start = improved = i, best = inf;
    if (trials[i].pending || !(trials[i].value < best)) continue;
    if (!(best - trials[i].value < 1e-3 * std::fabs(best))) improved = i;
    best = trials[i].value;
  }
  return start;
}

// A point near `centre`: about half of the coordinates move by a normal draw of this deviation, the others stay.
Point near(const Point& centre, const HashRng& draws, double deviation) {
  Point point = centre;
  for (std::size_t d = 0; d < point.size(); ++d)
    if (point.size() == 1 || draws.at(1).uniform(d) < 0.5)
      point[d] = std::clamp(point[d] + deviation * hash_normal(draws.at(0), d), 0.0, 1.0);
  return point;
}

}  // namespace

double expected_improvement(double mean, double deviation, double best) {
  const double z = (best - mean) / deviation;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * M_PI), below = 0.5 * std::erfc(-z / std::sqrt(2.0));
  return (best - mean) * below + deviation * density;
}

std::vector<double> known_values(const std::vector<Trial>& trials) {
  double worst = -std::numeric_limits<double>::infinity(), sum = 0, known = 0;
  for (const Trial& trial : trials)
    if (!trial.pending && std::isfinite(trial.value)) worst = std::max(worst, trial.value), sum += trial.value, ++known;
  std::vector<double> values;
  for (const Trial& trial : trials)
    values.push_back(trial.pending ? sum / known : std::isfinite(trial.value) ? trial.value : worst);
  return values;
}

Proposer::Proposer(SearchMethod method, std::vector<SearchRange> ranges, std::uint64_t seed, int grid_steps)
    : method_(method), ranges_(std::move(ranges)), seed_(seed), grid_steps_(grid_steps) {}

Point Proposer::settled(Point point) const {
  for (std::size_t d = 0; d < point.size(); ++d) point[d] = ranges_[d].settle(point[d]);
  return point;
}

std::size_t Proposer::grid_size() const {
  std::size_t size = 1;
  for (const SearchRange& range : ranges_) size *= steps_of(range, grid_steps_);
  return size;
}

// Each range is divided from end to end; the last one changes fastest.
Point Proposer::of_grid(std::size_t index) const {
  Point point(ranges_.size());
  for (std::size_t d = ranges_.size(); d-- > 0;) {
    const std::size_t steps = steps_of(ranges_[d], grid_steps_), at = index % steps;
    index /= steps;
    point[d] = !ranges_[d].choices.empty() ? (static_cast<double>(at) + 0.5) / static_cast<double>(steps)
               : steps == 1                ? 0.5
                                           : static_cast<double>(at) / static_cast<double>(steps - 1);
  }
  return point;
}

std::optional<Point> Proposer::next(const std::vector<Trial>& trials) const {
  if (method_ == SearchMethod::grid) {
    if (trials.size() >= grid_size()) return {};
    return settled(of_grid(trials.size()));
  }
  const auto begun = trials.begin() + static_cast<std::ptrdiff_t>(newest_start(trials, ranges_.size()));
  const std::vector<Trial> since(begun, trials.end());
  const bool any_known = std::any_of(since.begin(), since.end(),
                                     [](const Trial& trial) { return !trial.pending && std::isfinite(trial.value); });
  if (method_ == SearchMethod::random || since.size() < 2 * ranges_.size() + 2 || !any_known)
    return settled(random_point(ranges_.size(), seed_, trials.size()));
  return settled(most_promising(since));
}

Point Proposer::most_promising(const std::vector<Trial>& trials) const {
  std::vector<Point> points;
  for (const Trial& trial : trials) points.push_back(trial.point);
  const std::vector<double> values = known_values(trials);
  GaussianProcess process;
  process.fit(points, values);
  const auto lowest = static_cast<std::size_t>(std::min_element(values.begin(), values.end()) - values.begin());
  const double best = values[lowest] - margin(trials.size(), values);
  struct Candidate {
    Point point;
    double improvement;
  };
  const auto judge = [&](Point point) {
    const GaussianProcess::Prediction at = process.at(settled(point));
    return Candidate{std::move(point), expected_improvement(at.mean, at.deviation, best)};
  };
  const HashRng draws = HashRng(seed_, "candidates").at(trials.size());
  std::vector<Candidate> all;
  for (std::uint64_t i = 0; i < kCandidates; ++i) {
    Point point(ranges_.size());
    for (std::size_t d = 0; d < point.size(); ++d) point[d] = draws.at(i).uniform(d);
    all.push_back(judge(std::move(point)));
  }
  std::vector<std::size_t> order(trials.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  for (std::uint64_t i = 0; i < kNear; ++i) {
    const Point& centre = points[order[i % std::min<std::size_t>(order.size(), kCentres)]];
    all.push_back(
        judge(near(centre, draws.at(kCandidates + i), 0.3 * std::pow(0.5, static_cast<double>(i / kCentres % 6)))));
  }
  std::partial_sort(all.begin(), all.begin() + kRefined, all.end(),
                    [](const Candidate& a, const Candidate& b) { return a.improvement > b.improvement; });
  Candidate found = all.front();
  for (std::size_t c = 0; c < kRefined; ++c) {
    Candidate at = all[c];
    for (std::uint64_t i = 0; i < 100; ++i) {
      Candidate step =
          judge(near(at.point, draws.at(1'000'000 * (c + 1) + i), 0.1 * std::pow(0.95, static_cast<double>(i))));
      if (step.improvement > at.improvement) at = std::move(step);
    }
    if (at.improvement > found.improvement) found = std::move(at);
  }
  return found.point;
}

}  // namespace echelon::inline study
