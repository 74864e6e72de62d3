// SPDX-License-Identifier: Apache-2.0
#include "run/learning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/checksum.hpp"
#include "base/text.hpp"
#include "checkpoint/run_state.hpp"
#include "report/noise_scale.hpp"
#include "report/oscillation.hpp"

namespace echelon::inline run {
namespace {

constexpr std::ptrdiff_t kLeastSteps = 40;  // fewer tell a loss that stands from one that falls slowly too badly
constexpr std::ptrdiff_t kLeastWindow = 10, kWindowsInAll = 20;
constexpr double kHardly = 0.02;  // share of the loss by which a window may be below it if nothing was learned
constexpr double kClimbed = 2;    // times the first loss

// Returns for each i the mean loss over all replicas of their i-th steps; NaN if it is not known.
std::vector<double> mean_losses(const Ready& ready, Group& workers) {
  const std::vector<LossSums>& own = ready.statistics.own_losses();
  const auto steps = static_cast<std::size_t>(workers.max(static_cast<double>(own.size())));
  std::vector<double> sums(2 * steps);  // losses, then weights
  for (std::size_t i = 0; i < own.size(); ++i) sums[i] = own[i].loss, sums[steps + i] = own[i].weight;
  if (steps > 0) workers.sum(sums);
  for (std::size_t i = 0; i < steps; ++i) sums[i] /= sums[steps + i];
  sums.resize(steps);
  return sums;
}

double chance_loss(const Ready& ready) {
  const std::string& loss = ready.agreed.config.model.loss;
  const auto classes = static_cast<double>(ready.agreed.plan.train.classes);
  return classes > 1 && (loss == "auto" || loss == "softmax") ? std::log(classes) : 0;
}

// Uses the second half of the attempt's steps. The sum of the last one may have come after it.
double measured_noise_scale(const Ready& ready, Group& workers) {
  const std::vector<GradientSquares>& steps = ready.statistics.squares();
  std::vector<double> sums(5);
  for (std::size_t i = steps.size() / 2; i + 1 < steps.size(); ++i) {
    const GradientSquares& own = steps[i];
    const GradientSquares& all = steps[i].mean_inverse > 0 ? steps[i] : steps[i + 1];
    if (own.own_inverse <= 0) continue;
    sums[0] += 1, sums[1] += own.own, sums[2] += own.own_inverse, sums[3] += all.mean, sums[4] += all.mean_inverse;
  }
  workers.sum(sums);
  return noise_scale(
      {.steps = sums[0], .own = sums[1], .own_inverse = sums[2], .mean = sums[3], .mean_inverse = sums[4]});
}

}  // namespace

std::string nothing_learned(const LearningCurve& curve) {
  const std::vector<double>& losses = curve.losses;
  const std::ptrdiff_t steps = std::ssize(losses);
  if (steps < kLeastSteps) return {};
  const std::ptrdiff_t window = std::max(kLeastWindow, steps / kWindowsInAll);
  const double last = std::accumulate(losses.end() - window, losses.end(), 0.0) / static_cast<double>(window);
  const double start = curve.first > 0 ? curve.first : losses.front();
  const double nothing = curve.chance > 0 ? std::min(start, curve.chance) : start;
  if (!(last >= (1 - kHardly) * nothing)) return {};
  const auto [least, most] = std::minmax_element(losses.begin(), losses.end());
  std::string text = fmt::format("nothing was learned: the loss is {:.4g} over the last {}, and was {:.4g} at first",
                                 last, counted(window, "step"), start);
  if (curve.chance > 0) text += fmt::format("; guessing among the classes gives {:.4g}", curve.chance);
  if (*most > kClimbed * start)
    text +=
        fmt::format("; it had climbed to {:.4g} at step {} of this attempt: a lower optimizer.learning_rate may help",
                    *most, most - losses.begin() + 1);
  else if (*least < nothing / kClimbed)
    text += fmt::format("; it had fallen to {:.4g} at step {} of this attempt", *least, least - losses.begin() + 1);
  return text;
}

void take_learning(const Ready& ready, Group& workers, RunFigures& run) {
  std::vector<double> losses = mean_losses(ready, workers);
  run.loss_oscillation = loss_oscillation(losses);
  if (run.paced) return;
  if (ready.agreed.config.monitor.noise_scale) run.noise_scale = measured_noise_scale(ready, workers);
  const bool moved = hex64(ready.built.arenas.checksum()) != ready.checksum_at_start;
  if (workers.max(moved ? 1 : 0) == 0 && !losses.empty()) {
    run.findings.push_back(
        fmt::format("no weight has changed in {}: check optimizer.learning_rate and, if a codec chooses values by "
                    "their size, its threshold",
                    counted(std::ssize(losses), "step")));
    return;
  }
  std::erase_if(losses, [](double loss) { return !std::isfinite(loss); });
  if (const std::string text = nothing_learned(
          {.losses = std::move(losses), .first = ready.built.state.first_loss, .chance = chance_loss(ready)});
      !text.empty() && run.state == "finished")
    run.findings.push_back(text);
}

}  // namespace echelon::inline run
