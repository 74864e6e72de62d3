// SPDX-License-Identifier: Apache-2.0
#include "report/contest.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace echelon::inline report {
namespace {

constexpr double kWorst = -std::numeric_limits<double>::infinity();

// The median; infinite values count as known.
double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  if (values.size() % 2 == 1) return values[half];
  return values[half - 1] == values[half] ? values[half] : (values[half - 1] + values[half]) / 2;
}

const Repetition* round_of(const Setting& setting, int repeat) {
  const auto at = std::find_if(setting.repetitions.begin(), setting.repetitions.end(),
                               [&](const Repetition& r) { return r.repeat == repeat; });
  return at == setting.repetitions.end() ? nullptr : &*at;
}

}  // namespace

double oriented(const Measure& measure, const Setting& setting, const Repetition& repetition) {
  if (repetition.outcome == Outcome::diverged) return kWorst;
  if (!repetition.finished()) return kUnknown;
  const double value = measure.value(setting, repetition);
  if (std::isnan(value)) return kUnknown;
  if (std::isinf(value)) return kWorst;
  if (measure.ratio && !(value > 0)) return kUnknown;
  const double compared = measure.ratio ? std::log(value) : value;
  return measure.more_is_better ? compared : -compared;
}

double typical(const Measure& measure, const Setting& setting) {
  std::vector<double> known;
  for (const Repetition& repetition : setting.repetitions)
    if (const double value = oriented(measure, setting, repetition); !std::isnan(value)) known.push_back(value);
  if (known.empty()) return kUnknown;
  if (std::any_of(known.begin(), known.end(), [](double v) { return std::isinf(v); })) return median_of(known);
  return std::accumulate(known.begin(), known.end(), 0.0) / static_cast<double>(known.size());
}

double as_compared(const Measure& measure, double threshold) { return measure.ratio ? std::log(threshold) : threshold; }

Contest::Contest(const Measure& measure, const Setting& a, const Setting& b) : measure_(measure) {
  for (const Repetition& repetition : a.repetitions) {
    const Repetition* other = round_of(b, repetition.repeat);
    if (other == nullptr) continue;
    const double mine = oriented(measure, a, repetition), its = oriented(measure, b, *other);
    if (std::isnan(mine) || std::isnan(its)) continue;
    a_.push_back(mine);
    b_.push_back(its);
    censored_ = censored_ || std::isinf(mine) || std::isinf(its);
    differences_.push_back(mine - its);
  }
  if (!censored_ && !differences_.empty()) t_ = paired_mean(differences_);
}

double Contest::better(double threshold, double threshold_error) const {
  if (!enough()) return 1;
  if (!censored_) return t_.above(threshold, threshold_error);
  std::vector<double> less = a_;
  for (double& value : less) value -= threshold;
  return rank_sum_above(less, b_);
}

double Contest::worse(double threshold, double threshold_error) const {
  if (!enough()) return 1;
  if (!censored_) return t_.below(threshold, threshold_error);
  std::vector<double> less = a_;
  for (double& value : less) value -= threshold;
  return rank_sum_above(b_, less);
}

double Contest::flips(double threshold) const {
  return censored_ || pairs() < kFlipsFrom ? kUnknown : sign_flips_above(differences_, threshold);
}

Effect Contest::effect() const {
  Effect out{.ratio = measure_.ratio, .pairs = pairs()};
  if (pairs() == 0) return out;
  const auto shown = [&](double compared) { return measure_.ratio ? std::exp(compared) : compared; };
  if (censored_) {
    const double a = median_of(a_), b = median_of(b_);
    if (std::isfinite(a) && std::isfinite(b)) out.value = shown(a - b);
    return out;
  }
  out.value = shown(t_.mean);
  if (pairs() > 1) out.low = shown(t_.low), out.high = shown(t_.high);
  return out;
}

}  // namespace echelon::inline report
