#include "optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon {
namespace {

double step_factor(const OptimiserConfig& config, double epoch) {
  double factor = 1;
  for (double at : config.decay_at_epochs)
    if (epoch >= at) factor *= config.decay_factor;
  return factor;
}

// 1 at the end of the warm-up, final_factor at the last step's end (Loshchilov, Hutter 2017, one period).
double cosine_factor(const OptimiserConfig& config, double step, double warmup_steps, double total_steps) {
  const double span = std::max(1.0, total_steps - warmup_steps);
  const double part = std::clamp((step - warmup_steps) / span, 0.0, 1.0);
  return config.final_factor + (1 - config.final_factor) * 0.5 * (1 + std::cos(std::numbers::pi * part));
}

}  // namespace

std::vector<std::string> schedule_names() { return {"constant", "step", "cosine"}; }

double learning_rate_at(const OptimiserConfig& config, std::int64_t step, std::int64_t steps_per_epoch,
                        std::int64_t total_steps) {
  ECHELON_CHECK_GE(steps_per_epoch, 1);
  const double per_epoch = static_cast<double>(steps_per_epoch), now = static_cast<double>(step);
  const double warmup_steps = config.warmup_epochs * per_epoch;
  if (now < warmup_steps) return config.learning_rate * std::min(1.0, (now + 1) / warmup_steps);
  if (config.schedule == "constant") return config.learning_rate;
  if (config.schedule == "step") return config.learning_rate * step_factor(config, now / per_epoch);
  if (config.schedule == "cosine")
    return config.learning_rate * cosine_factor(config, now, warmup_steps, static_cast<double>(total_steps));
  throw ConfigError(unknown_name("optimizer.schedule", config.schedule, schedule_names()));
}

}  // namespace echelon
