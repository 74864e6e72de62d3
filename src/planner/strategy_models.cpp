// SPDX-License-Identifier: Apache-2.0
#include "planner/strategy_models.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace echelon::inline planner {

StepShape StrategySetting::shape(double factor) const {
  return {.before_s = factor * (step.data_s + step.other_s),
          .forward_s = factor * step.forward_s,
          .backward_s = factor * step.backward_s,
          .optimiser_s = factor * step.optimiser_s};
}

double strategy_step_s(const StrategySetting& setting, int replicas) {
  if (replicas == 1) return setting.step.total_s();
  const std::string& name = setting.exchange().strategy;
#define X(strategy, ...) \
  if (name == #strategy) return strategy##_step_s(setting, replicas);
  ECHELON_STRATEGIES(X)
#undef X
  throw ConfigError(fmt::format("exchange.strategy \"{}\" has no model", name));
}

}  // namespace echelon::inline planner
