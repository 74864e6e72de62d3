// SPDX-License-Identifier: Apache-2.0
#include "planner/strategy_models.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace echelon::inline planner {
namespace {

struct StrategyModel {
  std::string_view name;
  double (*step_s)(const StrategySetting& setting, int replicas);
};

#define X(strategy, ...) {.name = #strategy, .step_s = strategy##_step_s},
constexpr StrategyModel kModels[] = {ECHELON_STRATEGIES(X)};
#undef X

}  // namespace

StepShape StrategySetting::shape(double factor) const {
  return {.before_s = factor * (step.data_s + step.other_s),
          .forward_s = factor * step.forward_s,
          .backward_s = factor * step.backward_s,
          .optimiser_s = factor * step.optimiser_s,
          .overlap = step.overlap};
}

double strategy_step_s(const StrategySetting& setting, int replicas) {
  if (replicas == 1) return setting.step.total_s();
  const StrategyModel* model = find_traits(kModels, setting.exchange().strategy);
  if (model == nullptr)
    throw ConfigError(fmt::format("exchange.strategy \"{}\" has no model", setting.exchange().strategy));
  return model->step_s(setting, replicas);
}

}  // namespace echelon::inline planner
