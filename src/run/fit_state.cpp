// SPDX-License-Identifier: Apache-2.0
#include "run/fit_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "checkpoint/trained_data.hpp"
#include "config/batch_plan.hpp"
#include "config/choices.hpp"
#include "train/positions.hpp"

namespace echelon::inline run {
namespace {

bool all_equal(const std::vector<std::int64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

SamplePlanRequest request_of(const Config& config, const RunPlan& plan, std::vector<std::int64_t> batch) {
  SamplePlanRequest request = plan_request(plan.train, config.data, std::move(batch), config.seed);
  request.queue = true;
  return request;
}

// Returns what the replicas of the checkpoint had not trained, by their number. A step that is filled up by repeating
// samples repeats samples of other replicas, or samples that were trained before.
std::vector<OpenSamples> left_open(const RunState& state, const Config& config, const RunPlan& plan) {
  const auto replicas = static_cast<int>(state.replica_steps.size());
  SamplePlanRequest were = request_of(config, plan, plan_batch(config, replicas, plan.shards.samples()).per_replica);
  if (were.ragged == Ragged::wrap) were.ragged = Ragged::zero_weight;
  return open_samples(SamplePlan(std::move(were)), state.replica_steps, records_of(config, plan));
}

void leave_out(RunState& state, const Config& config, const RunPlan& plan) {
  std::int64_t samples = 0;
  if (!state.open.empty()) samples = samples_before(state.open, records_of(config, plan), state.position());
  for (const std::int64_t steps : state.replica_steps)
    samples += (state.step - steps) * plan.batch.global / std::ssize(state.replica_steps);
  if (samples > 0)
    log_warning(
        "about {} that slower replicas had not trained are left out: all continue at step {}, that of the fastest",
        counted(samples, "sample"), state.step);
  state.open.clear(), state.replica_steps.clear();
  state.epochs_over = state.epoch;
}

void fit_replicas(RunState& state, const Config& config, const RunPlan& plan) {
  const bool own_pace = any_choice_is(config, Property::own_pace), deals = deals_by_record(config, plan);
  const bool queue = config.data.balance == Balance::queue;
  if (state.replica_steps.empty() && state.open.empty() && queue && state.step > 0)  // its replicas stepped together
    state.open = {{.epoch = state.epoch,
                   .first = std::min(plan.shards.samples(), state.step_in_epoch * plan.batch.global),
                   .end = plan.shards.samples()}};
  if (own_pace && !queue && std::ssize(state.replica_steps) == plan.replicas) return;
  if (!own_pace || !deals) return leave_out(state, config, plan);
  if (state.replica_steps.empty()) return;
  // If all have done the same number, any number of replicas can share the rest of whole steps or of a whole epoch.
  const bool alike = all_equal(state.replica_steps);
  if (queue || !alike || (state.step_in_epoch > 0 && plan.shards.sharding() != Sharding::record))
    state.open = left_open(state, config, plan);
  if (!state.open.empty() && !queue)
    log_info("samples that were not trained are dealt again to {}, from the order of all records",
             counted(plan.replicas, "replica"));
  state.replica_steps.clear();
}

}  // namespace

bool deals_by_record(const Config& config, const RunPlan& plan) {
  const std::vector<std::int64_t>& batch = plan.batch.per_replica;
  return all_equal(batch) && !plan.shards.rereads() && !plan.shards.stream() && plan.shards.buckets().empty() &&
         config.data.as_replicas == 0 && config.exchange.warmup_replicas == 0;
}

SamplePlan records_of(const Config& config, const RunPlan& plan) {
  SamplePlanRequest request = request_of(config, plan, plan.batch.per_replica);
  request.sharding = Sharding::record;
  return SamplePlan(std::move(request));
}

void fit_state(RunState& state, const Config& config, const RunPlan& plan, const Decision& start, int replica) {
  const std::string& checkpoint = start.checkpoint;
  if (state.step != start.step || state.step_in_epoch < 0 || state.epoch < 0)
    throw DataError(fmt::format("{}: its position (step {}, step {} of epoch {}) is not that of step {}", checkpoint,
                                state.step, state.step_in_epoch, state.epoch, start.step));
  if (state.global_batch != plan.batch.global)
    throw ConfigError(
        fmt::format("{} was trained in steps of {}, but this run would take {}: give it another name, or set "
                    "run.restart = \"never\"",
                    checkpoint, counted(state.global_batch, "sample"), plan.batch.global));
  const TrainedData here = trained_data_of(plan.train), there = trained_data_in(checkpoint);
  if (here.fingerprint != there.fingerprint)
    log_warning("{} was trained on different data ({}; data.train has {}): the position in the data is kept",
                checkpoint, counted(there.samples, "sample"), count_text(here.samples));
  const std::int64_t replicas = plan.shards.replicas();
  if (state.replicas != replicas)
    log_info("resuming on {} from a run of {}", counted(replicas, "replica"), counted(state.replicas, "replica"));
  if (state.steps_per_epoch != plan.steps_per_epoch) {
    log_warning("an epoch now has {}, but it had {} when the checkpoint was written",
                counted(plan.steps_per_epoch, "step"), state.steps_per_epoch);
    if (state.step_in_epoch >= plan.shards.steps_in(state.epoch)) {
      state.step_in_epoch = 0;
      ++state.epoch;
    }
  }
  state.replicas = replicas;
  state.steps_per_epoch = plan.steps_per_epoch;
  fit_replicas(state, config, plan);
  state.at = position_of(state, plan.shards, replica);
}

}  // namespace echelon::inline run
