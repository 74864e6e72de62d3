// SPDX-License-Identifier: Apache-2.0
#include "run/restore.hpp"

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/saved_model.hpp"
#include "job/agree.hpp"
#include "run/channels.hpp"
#include "run/fit_state.hpp"
#include "run/initial_weights.hpp"
#include "train/dealt_draws.hpp"
#include "train/draw_queue.hpp"

namespace echelon::inline run {
namespace {

void restore_checkpoint(const Phases& p) {
  const Decision& start = p.agreed.start;
  const auto visit = [&](StateVisitor& visitor) {
    if (!start.weights_only) p.built.state.visit_state(visitor);
    if (!start.other_run) {
      p.opened.layouts.visit_state(visitor);
      p.opened.tuning.visit_state(visitor);
    }
    p.built.arenas.visit_state(visitor);
    if (start.optimiser) p.built.optimiser.visit_state(visitor);
    if (start.residuals) p.built.strategy->visit_state(visitor);
  };
  load_checkpoint(start.checkpoint, visit, start.other_run);
  if (!start.weights_only && holds_average(start.checkpoint))
    load_checkpoint(start.checkpoint, [&](StateVisitor& visitor) { p.built.optimiser.visit_average(visitor); });
  else
    p.built.optimiser.begin_average();
  if (start.other_run) p.built.state.best = {};
  if (!start.weights_only) fit_state(p.built.state, p.agreed.config, p.agreed.plan, start, p.placed.groups.replica());
  if (!start.optimiser) p.built.optimiser.begin_states(start.step);
  p.built.arenas.touch();
}

}  // namespace

void restore(const Phases& p) {
  const Decision& start = p.agreed.start;
  p.context.phase.enter("start");
  if (!start.first_step()) return all_or_none(p.context.group, [&] { restore_checkpoint(p); });
  if (!start.weights.empty()) all_or_none(p.context.group, [&] { load_weights(start.weights, p.built.arenas); });
  broadcast_weights(p.built.arenas, p.placed.groups.exchange(), kWeightsChannel);
  p.built.optimiser.begin_average();
}

std::unique_ptr<BatchDraws> make_draws(const Phases& p) {
  const RunPlan& plan = p.agreed.plan;
  const std::vector<OpenSamples>& open = p.built.state.open;
  const bool queue = p.agreed.config.data.balance == Balance::queue;
  if (!p.placed.groups.trains() || (!queue && open.empty())) return nullptr;
  Engine& workers = p.placed.groups.data_parallel_peers();
  const SamplePlan records = records_of(p.agreed.config, plan);
  if (queue)
    return std::make_unique<DrawQueue>(workers, kDrawsChannel, records, open, plan.steps_per_epoch, plan.total_steps);
  return std::make_unique<DealtDraws>(workers.rank(), records, open, plan.steps_per_epoch, plan.total_steps);
}

void restore_carried(const Decision& start, Stepper& stepper) {
  if (start.first_step() || start.weights_only) return;
  load_checkpoint(
      start.checkpoint, [&](StateVisitor& visitor) { stepper.visit_state(visitor); }, start.other_run);
}

}  // namespace echelon::inline run
