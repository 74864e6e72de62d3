// SPDX-License-Identifier: Apache-2.0
#include "device/paced/step_pace.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.hpp"

namespace echelon::inline device {
namespace {

constexpr double kLeastSleep_s = 20e-6;
constexpr double kSleepsAStep = 64;  // rough limit per step, because each sleep costs a context switch

}  // namespace

StepPace::StepPace(StepPaceOptions options, const Clock& clock, const Sleeper& sleeper)
    : options_(std::move(options)),
      clock_(clock),
      pacer_(sleeper),
      draws_(HashRng(options_.seed, "pace").at(static_cast<std::uint64_t>(options_.rank))) {
  ECHELON_CHECK_GE(options_.step_s, 0.0);
  ECHELON_CHECK_GT(options_.factor, 0.0);
  rank_factor_ = options_.factor * std::exp(options_.spread * hash_normal(draws_, 0));
}

std::vector<double> StepPace::seconds_of(const std::vector<OpSpec>& ops, double passes) const {
  std::vector<double> seconds;
  for (const OpSpec& op : ops) seconds.push_back(options_.times.seconds(op));
  const double all_s = std::accumulate(seconds.begin(), seconds.end(), 0.0) * passes;
  if (options_.step_s == 0 || all_s == 0) return seconds;
  for (double& one : seconds) one *= options_.step_s / all_s;
  return seconds;
}

void StepPace::begin_step(std::int64_t step) {
  factor_ = rank_factor_ * std::exp(options_.jitter * hash_normal(draws_.at(1), static_cast<std::uint64_t>(step)));
  pacer_.set_shortest(std::max(kLeastSleep_s, options_.step_s * factor_ / kSleepsAStep));
  pace_s_ = taken_s_ = 0;
}

void StepPace::took(double pace_s, double busy_s) {
  pace_s_ += pace_s;
  taken_s_ += busy_s + pacer_.spend(pace_s - busy_s);
}

void StepPace::end_step() {
  taken_s_ += pacer_.settle();
  pacer_.forgive();
  record_.pace_s += pace_s_;
  const double ratio = pace_s_ > 0 ? taken_s_ / pace_s_ : 1;
  if (ratio > kOverPace) record_.over_steps += 1;
  record_.worst = std::max(record_.worst, ratio);
}

}  // namespace echelon::inline device
