#include "run/restore.hpp"

#include "checkpoint/checkpoint.hpp"
#include "job/agree.hpp"
#include "run/channels.hpp"
#include "run/fit_state.hpp"
#include "run/initial_weights.hpp"
#include "train/dealt_draws.hpp"
#include "train/draw_queue.hpp"

namespace echelon::inline run {
namespace {

void restore_checkpoint(const Agreed& agreed, int replica, Tuning& tuning, Built& built) {
  const Decision& start = agreed.start;
  const auto visit = [&](StateVisitor& visitor) {
    if (!start.weights_only) built.state.visit_state(visitor);
    if (!start.other_run) tuning.visit_state(visitor);
    built.arenas.visit_state(visitor);
    if (start.optimiser) built.optimiser.visit_state(visitor);
    if (start.residuals) built.strategy->visit_state(visitor);
  };
  load_checkpoint(start.checkpoint, visit, start.other_run);
  if (start.other_run) built.state.best = {};
  if (!start.weights_only) fit_state(built.state, agreed.config, agreed.plan, start, replica);
  if (!start.optimiser) built.optimiser.begin_states(start.step);
  built.arenas.touch();
}

}  // namespace

void restore(AttemptContext& context, Placed& placed, const Agreed& agreed, Opened& opened, Built& built) {
  const Decision& start = agreed.start;
  context.phase.enter("start");
  if (!start.first_step())
    return all_or_none(context.group,
                       [&] { restore_checkpoint(agreed, placed.groups.replica(), opened.tuning, built); });
  if (!start.weights.empty()) all_or_none(context.group, [&] { load_weights(start.weights, built.arenas); });
  broadcast_weights(built.arenas, placed.groups.exchange(), kWeightsChannel);
}

std::unique_ptr<BatchDraws> make_draws(Placed& placed, const Agreed& agreed, const RunState& state) {
  const RunPlan& plan = agreed.plan;
  const bool queue = agreed.config.data.balance == Balance::queue;
  if (!placed.groups.trains() || (!queue && state.open.empty())) return nullptr;
  Engine& workers = placed.groups.data_parallel_peers();
  const SamplePlan records = records_of(agreed.config, plan);
  if (queue)
    return std::make_unique<DrawQueue>(workers, kDrawsChannel, records, state.open, plan.steps_per_epoch,
                                       plan.total_steps);
  return std::make_unique<DealtDraws>(workers.rank(), records, state.open, plan.steps_per_epoch, plan.total_steps);
}

void restore_carried(const Decision& start, Stepper& stepper) {
  if (start.first_step() || start.weights_only) return;
  load_checkpoint(
      start.checkpoint, [&](StateVisitor& visitor) { stepper.visit_state(visitor); }, start.other_run);
}

}  // namespace echelon::inline run
