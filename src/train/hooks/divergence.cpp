// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/divergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "job/agree.hpp"

namespace echelon::inline train {
namespace {

std::string cure(const Config& config) {
  return fmt::format("a lower optimizer.learning_rate than {} or optimizer.warmup_epochs may help",
                     config.optimiser.learning_rate);
}

}  // namespace

bool DivergenceHook::too_many(double loss, std::int64_t step, std::string& text) {
  if (!std::isfinite(loss)) return false;  // a paced device computes none
  if (state_.first_loss == 0) state_.first_loss = loss;
  const double limit = config_.train.divergence_factor * std::max(1.0, state_.first_loss);
  above_ = limit > 0 && loss > limit ? above_ + 1 : 0;
  if (config_.monitor.divergence == Watch::off || above_ < kDivergenceSteps) return false;
  text = fmt::format(
      "training diverges: the loss is {:.4g} at step {}, after {:.4g} at the first step, and was above "
      "{:.4g} for {} steps (train.divergence_factor = {}; 0 turns this off); {}",
      loss, step, state_.first_loss, limit, kDivergenceSteps, config_.train.divergence_factor, cure(config_));
  if (config_.monitor.divergence == Watch::stop) return true;
  above_ = 0;  // told again after as many steps
  if (warn_) warn_(text);
  return false;
}

void DivergenceHook::step_end(const StepRecord& record) {
  if (!every_step_ || !record.meets) return;
  if (std::string text; too_many(record.loss, record.step, text)) throw CommonError(kExitNumeric, text);
}

double DivergenceHook::diverges(const LossSums& own, std::int64_t step) {
  if (own.weight <= 0) return 0;
  const double loss = own.loss / own.weight;
  std::string text;
  return too_many(loss, step, text) ? loss : 0;
}

std::string diverged_text(double loss, int rank, const Config& config) {
  return fmt::format(
      "training diverges: the loss of rank {} is {:.4g}, and was above {:g} times that of the first step (at least 1) "
      "for {} steps of that rank (train.divergence_factor; 0 turns this off); {}",
      rank, loss, config.train.divergence_factor, kDivergenceSteps, cure(config));
}

std::string not_finite_text(double loss, std::int64_t step, int rank, const Config& config) {
  const std::string seen =
      fmt::format("the loss is {} at step {} on rank {}", std::isnan(loss) ? "not a number" : "infinite", step, rank);
  if (step > 1) return seen + "; " + cure(config);
  return seen +
         ", before any weight was updated: the learning rate is not the cause; look at the values of data.train "
         "and at the model";
}

}  // namespace echelon::inline train
