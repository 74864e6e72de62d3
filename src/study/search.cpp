#include "study/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "study/search/gaussian_process.hpp"

namespace echelon::inline study {
namespace {

constexpr std::size_t kFewest = 4;  // trials that finished, to tell what mattered

std::vector<SearchRange> ranges_of(const StudyPlan& study) {
  std::vector<SearchRange> ranges = study.ranges;
  for (const StudyAxis& axis : study.axes) ranges.push_back({.key = axis.key, .choices = axis.values});
  return ranges;
}

}  // namespace

StudySearch::StudySearch(const StudyPlan& study)
    : study_(study), proposer_(*study.search, ranges_of(study), study.seed, static_cast<int>(study.grid_steps)) {}

std::optional<StudyCell> StudySearch::propose() {
  if (static_cast<std::int64_t>(trials_.size()) >= study_.trials) return {};
  const std::optional<Point> point = proposer_.next(trials_);
  if (!point) return {};
  proposed_ = *point;
  std::string text;
  std::vector<std::string> sets;
  for (std::size_t d = 0; d < ranges().size(); ++d) {
    const std::string value = ranges()[d].value(proposed_[d]);
    const std::string& key = ranges()[d].key;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key.substr(key.rfind('.') + 1), value);
    sets.push_back(ranges()[d].key + "=" + value);
  }
  return make_cell(study_, text, sets, static_cast<int>(study_.ranks.back()), 1);
}

void StudySearch::learn(double value) { trials_.push_back({proposed_, value}); }

std::vector<double> StudySearch::what_mattered() const {
  const auto finished = static_cast<std::size_t>(
      std::count_if(trials_.begin(), trials_.end(), [](const Trial& trial) { return std::isfinite(trial.value); }));
  if (finished < kFewest) return {};
  std::vector<Point> points;
  for (const Trial& trial : trials_) points.push_back(trial.point);
  GaussianProcess process;
  process.fit(points, known_values(trials_));
  return process.main_effects();
}

}  // namespace echelon::inline study
