#include "run/restore.hpp"

#include "checkpoint/checkpoint.hpp"

namespace echelon::inline run {

void restore(const Decision& start, const RunPlan& plan, const SavedParts& parts) {
  const auto visit = [&](StateVisitor& visitor) {
    if (!start.weights_only) parts.state.visit_state(visitor);
    if (!start.other_run) parts.tuning.visit_state(visitor);
    parts.arenas.visit_state(visitor);
    if (start.optimiser) parts.optimiser.visit_state(visitor);
    if (start.residuals) parts.strategy.visit_state(visitor);
    if (parts.draws && !start.weights_only) parts.draws->visit_state(visitor);
  };
  load_checkpoint(start.checkpoint, visit, start.other_run);
  if (!start.weights_only)
    fit_state(parts.state, plan, start, parts.strategy.progress().meets == Progress::Meets::on_call);
  if (!start.optimiser) parts.optimiser.begin_states(start.step);
  parts.arenas.touch();
}

void restore_carried(const Decision& start, Stepper& runner) {
  if (start.first_step() || start.weights_only) return;
  load_checkpoint(
      start.checkpoint, [&](StateVisitor& visitor) { runner.visit_state(visitor); }, start.other_run);
}

}  // namespace echelon::inline run
