// SPDX-License-Identifier: Apache-2.0
#include "run/ready.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "base/checksum.hpp"
#include "base/log.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/trained_data.hpp"
#include "job/job_end.hpp"
#include "run/channels.hpp"
#include "run/restore.hpp"

namespace echelon::inline run {
namespace {

std::string checked_checksum(const Agreed& agreed, const Opened& opened, const Arenas& arenas) {
  agreed.replay.check_weights(arenas);
  return opened.device->computes() ? hex64(arenas.checksum()) : "";
}

std::unique_ptr<Stepper> stepper_at_start(Ready& r) {
  FaultInjector* const faults = r.context.options.faults;
  auto stepper = make_stepper({r.agreed.config, r.agreed.plan, r.placed.groups, r.built.arenas, *r.built.strategy,
                               r.built.optimiser, r.built.batch_norm_sum, *r.opened.activations, r.context.phase,
                               r.built.state.at, r.draws.get(), faults});
  restore_carried(r.agreed.start, *stepper);
  if (faults) faults->check(r.agreed.config, r.built.arenas);
  return stepper;
}

std::optional<MetricsHook> metrics_of(const Ready& r) {
  if (!r.context.is_first()) return {};
  return std::optional<MetricsHook>(std::in_place, r.agreed.start.folder.attempt + "/metrics.jsonl",
                                    r.agreed.config.run.log_every_steps, r.agreed.config.evaluate.metrics);
}

std::function<void(const std::string&)> warns(const AttemptContext& context) {
  if (!context.is_first()) return {};
  return [](const std::string& text) { log_warning("{}", text); };
}

MonitorSetting monitor_setting(const Ready& r) {
  MonitorSetting setting{.config = r.agreed.config, .hosts = {}, .parts = {}, .total_steps = r.agreed.plan.total_steps};
  const Mesh& mesh = r.placed.groups.mesh();
  for (int rank = 0; rank < r.placed.groups.roles().workers; ++rank) {
    setting.hosts.push_back(r.opened.provenance.hosts[static_cast<std::size_t>(rank)]);
    setting.parts.push_back(mesh.index_in_group(mesh.coord(rank)));
  }
  setting.reports = r.context.is_first();
  setting.left_s = left_of_job_s;
  setting.warn = warns(r.context);
  return setting;
}

TraceSetting trace_setting(const Ready& r, const TraceSteps& steps) {
  const RankGroups& groups = r.placed.groups;
  const Mesh& mesh = groups.mesh();
  const std::string role = !groups.trains() ? "server"
                           : mesh.splits()
                               ? fmt::format("part {} of replica {}", mesh.part(groups.coord()), groups.replica())
                               : "worker";
  return {.steps = steps,
          .folder = r.agreed.start.folder.attempt,
          .role = role,
          .host = r.context.slot.host,
          .hosts = r.opened.provenance.hosts,
          .channel = kControlChannel,
          .own_pace = r.built.asynchronous()};
}

EvaluateHook::Tell tell_evaluation(Ready& r) {
  return [&r](const char* type, const EpochFigures& figures) {
    if (r.metrics) r.metrics->add_test(type, figures);
    if (type != std::string_view("test")) return;
    r.goal.take(test_figures(figures));
    r.checkpoints.take(test_figures(figures));
    r.monitor.take(figures.step, figures.test_loss);
  };
}

// Null except on rank 0, and on the ranks of the first replica that hold a part of the model each.
std::unique_ptr<CheckpointWriter> checkpoint_writer(Ready& r) {
  RankGroups& groups = r.placed.groups;
  const bool has_part = groups.mesh().parts() > 1 && groups.replica() == 0 && groups.coord().spatial_shard == 0;
  if (!r.metrics && !has_part) return nullptr;
  std::optional<PartRanks> parts_of_model;
  if (has_part) parts_of_model.emplace(groups.model(), kPartsChannel);
  SaveOptions save;
  if (r.metrics) {
    save.training_data = to_text(trained_data_of(r.agreed.plan.train));
    save.before_publish = [&r] {
      r.metrics->sync();
      r.context.lock.confirm();
    };
  }
  return std::make_unique<CheckpointWriter>(r.agreed.start.folder.checkpoints(), r.agreed.config.checkpoint, save,
                                            parts_of_model);
}

CheckpointParts checkpoint_parts(Ready& r) {
  return {.visit = [&r](StateVisitor& visitor) { r.visit_state(visitor); },
          .gather =
              [&r] {
                r.context.lock.confirm();
                return r.gather_rows();
              },
          .arenas = r.built.arenas,
          .strategy = *r.built.strategy,
          .state = r.built.state,
          .phase = r.context.phase,
          .board = r.context.board};
}

RecordsEnd settle_records(Ready& r) { return {number_of(r.agreed.start.folder.attempt), r.metrics->settle()}; }

void tell_checkpoint(Ready& r, const CheckpointFigures& figures) {
  r.metrics->add_checkpoint(figures);
  if (!r.context.options.faults) return;
  const std::string path = checkpoint_path(r.agreed.start.folder.checkpoints(), figures.step);
  r.context.options.faults->flip_checkpoint(figures.step, files_of(path));
}

StatisticsHook statistics_of(const Ready& r) {
  const RunState& state = r.built.state;
  const ExchangeConfig& exchange = r.agreed.config.exchange;
  const std::int64_t epoch = r.draws ? r.draws->plan().first_epoch() : state.epoch;
  const std::int64_t done = !r.draws && state.at.epoch == epoch ? state.at.step_in_epoch : 0;
  return StatisticsHook(r.context.options.warmup_steps, TrainedBatches(epoch, done),
                        std::max(exchange.codec_warmup_steps, exchange.warmup_steps));
}

template <class Optional>
Hook* hook_of(Optional& hook) {
  return hook ? &*hook : nullptr;
}

}  // namespace

Ready::Ready(const Phases& before, std::unique_ptr<BatchDraws> batches)
    : Phases(before),
      draws(std::move(batches)),
      checksum_at_start(checked_checksum(agreed, opened, built.arenas)),
      stepper(stepper_at_start(*this)),
      metrics(metrics_of(*this)),
      agreement(agreed.config.exchange.verify_every_steps, placed.groups.mesh(), built.arenas, *built.strategy,
                context.group),
      goal(agreed.config.goal),
      monitor(monitor_setting(*this), context.engine.clock()),
      evaluation(agreed.config, agreed.plan, placed.groups, built.arenas, built.optimiser, *built.strategy,
                 *opened.activations, context.group, placed.replica_or_null(), context.phase, tell_evaluation(*this)),
      divergence(agreed.config, built.state, built.strategy->progress().meets == Progress::Meets::every_step,
                 warns(context)),
      checkpoints(
          agreed.config.checkpoint, agreed.start.folder, checkpoint_parts(*this), checkpoint_writer(*this),
          [this] { return settle_records(*this); },
          [this](const CheckpointFigures& figures) { tell_checkpoint(*this, figures); }),
      statistics(statistics_of(*this)),
      status(context.board) {
  const Config& config = agreed.config;
  FaultInjector* const faults = context.options.faults;
  if (faults && faults->has(FaultKind::flip_weight)) weight_faults.emplace(*faults, built.arenas, *built.strategy);
  if (const std::optional<TraceSteps> steps = trace_steps(config)) {
    recording.emplace(context.engine, *steps, built.asynchronous() && !placed.groups.trains());
    trace.emplace(trace_setting(*this, *steps), recording->recorder(), context.engine);
  }
  if (config.data.balance == Balance::speed && placed.groups.mesh().replicas() > 1)
    balance.emplace(agreed.plan, *stepper, context.group, built.state);
  if (context.is_first())
    progress.emplace(config.run, agreed.plan.total_steps, config.train.epochs, built.asynchronous());
  for (Hook* const hook : std::initializer_list<Hook*>{hook_of(weight_faults), hook_of(trace), &agreement, &evaluation,
                                                       &goal, &monitor, &divergence, hook_of(metrics), &checkpoints,
                                                       hook_of(balance), &statistics, &status, hook_of(progress)})
    if (hook) hooks.push_back(hook);
}

void Ready::visit_state(StateVisitor& visitor) {
  built.state.visit_state(visitor);
  opened.layouts.visit_state(visitor);
  opened.tuning.visit_state(visitor);
  built.arenas.visit_state(visitor);
  built.optimiser.visit_state(visitor);
  built.optimiser.visit_average(visitor);
  built.strategy->visit_state(visitor);
  stepper->visit_state(visitor);
}

GatheredTensors Ready::gather_rows() {
  Group all(placed.groups.exchange(), kControlChannel);
  Group replicas(placed.groups.data_parallel_peers(), kControlChannel);
  if (draws) built.state.open = draws->gather(replicas);
  GatheredTensors rows =
      echelon::gather_rows(all, [this](StateVisitor& visitor) { built.strategy->visit_state(visitor); });
  rows.merge(echelon::gather_rows(replicas, [this](StateVisitor& visitor) { stepper->visit_state(visitor); }));
  return rows;
}

}  // namespace echelon::inline run
