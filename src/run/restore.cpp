#include "run/restore.hpp"

#include "checkpoint/checkpoint.hpp"
#include "run/fit_state.hpp"
#include "train/dealt_draws.hpp"
#include "train/draw_queue.hpp"

namespace echelon::inline run {

void restore(const Decision& start, const Config& config, const RunPlan& plan, int replica, const SavedParts& parts) {
  const auto visit = [&](StateVisitor& visitor) {
    if (!start.weights_only) parts.state.visit_state(visitor);
    if (!start.other_run) parts.tuning.visit_state(visitor);
    parts.arenas.visit_state(visitor);
    if (start.optimiser) parts.optimiser.visit_state(visitor);
    if (start.residuals) parts.strategy.visit_state(visitor);
  };
  load_checkpoint(start.checkpoint, visit, start.other_run);
  if (start.other_run) parts.state.best = {};
  if (!start.weights_only) fit_state(parts.state, config, plan, start, replica);
  if (!start.optimiser) parts.optimiser.begin_states(start.step);
  parts.arenas.touch();
}

std::unique_ptr<BatchDraws> make_draws(const Config& config, const RunPlan& plan, const RunState& state,
                                       Engine& workers, int channel) {
  const bool queue = config.data.balance == Balance::queue;
  if (!queue && state.open.empty()) return nullptr;
  const SamplePlan records = records_of(config, plan);
  if (queue)
    return std::make_unique<DrawQueue>(workers, channel, records, state.open, plan.steps_per_epoch, plan.total_steps);
  return std::make_unique<DealtDraws>(workers.rank(), records, state.open, plan.steps_per_epoch, plan.total_steps);
}

void restore_carried(const Decision& start, Stepper& runner) {
  if (start.first_step() || start.weights_only) return;
  load_checkpoint(
      start.checkpoint, [&](StateVisitor& visitor) { runner.visit_state(visitor); }, start.other_run);
}

}  // namespace echelon::inline run
