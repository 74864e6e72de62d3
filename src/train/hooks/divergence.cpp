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

void DivergenceHook::step_end(const StepRecord& record) {
  if (!record.meets || !std::isfinite(record.loss)) return;  // a paced device computes none
  if (state_.first_loss == 0) state_.first_loss = record.loss;
  const double limit = config_.train.divergence_factor * std::max(1.0, state_.first_loss);
  above_ = limit > 0 && record.loss > limit ? above_ + 1 : 0;
  if (config_.monitor.divergence == Watch::off || above_ < kDivergenceSteps) return;
  const std::string text = fmt::format(
      "training diverges: the loss is {:.4g} at step {}, after {:.4g} at the first step, and was above "
      "{:.4g} for {} steps (train.divergence_factor = {}; 0 turns this off); {}",
      record.loss, record.step, state_.first_loss, limit, kDivergenceSteps, config_.train.divergence_factor,
      cure(config_));
  if (config_.monitor.divergence == Watch::stop) throw CommonError(kExitNumeric, text);
  above_ = 0;  // told again after as many steps
  if (warn_) warn_(text);
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
