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
  const std::int64_t span = config.schedule_epochs > 0 ? config.schedule_epochs * steps_per_epoch : total_steps;
  const double part = part_of_span(now, warmup_steps, static_cast<double>(span));
  if (config.schedule == "cosine") return config.learning_rate * towards_final(config, cosine_left(part));
  if (config.schedule == "polynomial")
    return config.learning_rate * towards_final(config, std::pow(1 - part, config.power));
  throw ConfigError(unknown_name("optimizer.schedule", config.schedule, schedule_names()));
}

}  // namespace echelon::inline optim
