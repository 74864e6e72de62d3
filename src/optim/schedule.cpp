// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "config/traits/rules.hpp"

namespace echelon::inline optim {
namespace {

double step_factor(const OptimiserConfig& config, double epoch) {
  double factor = 1;
  for (double at : config.decay_at_epochs)
    if (epoch >= at) factor *= config.decay_factor;
  return factor;
}

// 0 at the end of the warm-up, 1 at the end of the last step.
double part_of_span(double step, double warmup_steps, double total_steps) {
  return std::clamp((step - warmup_steps) / std::max(1.0, total_steps - warmup_steps), 0.0, 1.0);
}

// Goes from 1 to final_factor as `left` goes from 1 to 0.
double towards_final(const OptimiserConfig& config, double left) {
  return config.final_factor + (1 - config.final_factor) * left;
}

// Loshchilov, Hutter 2017, one period.
double cosine_left(double part) { return 0.5 * (1 + std::cos(std::numbers::pi * part)); }

// The factor at `now`, in the unit of the points, which increase from 0.
double point_factor(const OptimiserConfig& config, double now, bool linear) {
  const std::vector<double>&points = config.points, &factors = config.factors;
  const auto next = static_cast<std::size_t>(std::upper_bound(points.begin(), points.end(), now) - points.begin());
  ECHELON_CHECK_GE(next, 1U, "points begin with 0");
  if (!linear || next == points.size()) return factors[next - 1];
  const double part = (now - points[next - 1]) / (points[next] - points[next - 1]);
  return factors[next - 1] + (factors[next] - factors[next - 1]) * part;
}

// Smith, Topin 2019, with two phases and the numbering of steps of PyTorch's OneCycleLR.
double cycle_factor(const OptimiserConfig& config, double step, double total_steps) {
  const double last = total_steps - 1, peak = std::max(0.0, config.rise * total_steps - 1);
  const bool rises = step <= peak && peak > 0;
  const double from = rises ? config.first_factor : 1, to = rises ? 1 : config.final_factor;
  const double part = std::clamp(rises ? step / peak : (step - peak) / std::max(1e-9, last - peak), 0.0, 1.0);
  return to + (from - to) * (config.anneal == "linear" ? 1 - part : cosine_left(part));
}

}  // namespace

std::vector<std::string> schedule_names() { return names_in(kSchedules); }

std::vector<std::string> scaling_names() { return names_in(kScalings); }

double scaling_factor(const OptimiserConfig& config, std::int64_t global_batch) {
  if (config.scaling == "none") return 1;
  ECHELON_CHECK_GE(config.base_batch, 1);
  const double growth = static_cast<double>(global_batch) / static_cast<double>(config.base_batch);
  if (config.scaling == "linear") return growth;
  if (config.scaling == "sqrt") return std::sqrt(growth);
  throw ConfigError(unknown_name("optimizer.scaling", config.scaling, scaling_names()));
}

double learning_rate_at(const OptimiserConfig& config, std::int64_t step, std::int64_t steps_per_epoch,
                        std::int64_t total_steps) {
  ECHELON_CHECK_GE(steps_per_epoch, 1);
  const double per_epoch = static_cast<double>(steps_per_epoch), now = static_cast<double>(step);
  const double warmup_steps = config.warmup_epochs * per_epoch;
  if (now < warmup_steps) return config.learning_rate * std::min(1.0, (now + 1) / warmup_steps);
  if (config.schedule == "constant") return config.learning_rate;
  if (config.schedule == "step") return config.learning_rate * step_factor(config, now / per_epoch);
  const bool linear = config.schedule == "piecewise_linear";
  if (linear || config.schedule == "piecewise_constant")
    return config.learning_rate *
           point_factor(config, config.points_in == PointsIn::steps ? now : now / per_epoch, linear);
  const std::int64_t span = config.schedule_epochs > 0 ? config.schedule_epochs * steps_per_epoch : total_steps;
  if (config.schedule == "one_cycle")
    return config.learning_rate * cycle_factor(config, now, static_cast<double>(span));
  const double part = part_of_span(now, warmup_steps, static_cast<double>(span));
  if (config.schedule == "cosine") return config.learning_rate * towards_final(config, cosine_left(part));
  if (config.schedule == "polynomial")
    return config.learning_rate * towards_final(config, std::pow(1 - part, config.power));
  throw ConfigError(unknown_name("optimizer.schedule", config.schedule, schedule_names()));
}

}  // namespace echelon::inline optim
