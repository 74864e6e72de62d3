#include "run/attempt.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "checkpoint/trained_data.hpp"
#include "config/batch_plan.hpp"
#include "config/parse.hpp"
#include "config/refuse.hpp"
#include "job/agree.hpp"
#include "job/job_end.hpp"
#include "run/banner.hpp"
#include "run/initial_weights.hpp"
#include "run/restore.hpp"
#include "run/shared_results.hpp"
#include "run/stage_data.hpp"
#include "train/stepper.hpp"

namespace echelon::inline run {
namespace {

constexpr int kControlChannel = 0;       // agreement, evaluation, metrics
constexpr int kWeightsChannel = 1;       // the first broadcast
constexpr int kSumsChannel = 2;          // synchronised batch norm
constexpr int kControlWordsChannel = 3;  // and the next Control::kChannels: agreement of ranks beside the exchange
constexpr int kDrawsChannel = kControlWordsChannel + Control::kChannels;  // and the next DrawQueue::kChannels
constexpr int kStrategyChannel = kDrawsChannel + DrawQueue::kChannels;    // from here on: the strategy's
// Of a model group 0 is that of checkpoints (attempt_hooks.cpp).
constexpr int kNormsChannel = 1;    // of a model group and of the shards of a stage: norms of split models
constexpr int kReplicaChannel = 2;  // likewise: when its ranks come to meetings, what they evaluate by themselves
constexpr int kCutsChannel = 3;     // likewise, from here on: activations between its ranks

// "_2x1-0" of the first of two stages; nothing where the model is whole.
std::string part_name(const Mesh& mesh, int part) {
  return mesh.parts() > 1 ? fmt::format("_{}x{}-{}", mesh.pipeline(), mesh.tensor(), part) : "";
}

}  // namespace

Attempt::Attempt(Engine& engine, AttemptOptions options)
    : engine_(engine),
      options_(std::move(options)),
      group_(engine, kControlChannel),
      slot_(host_slot_of(engine.transport())),
      phase_(engine.clock()) {
  if (options_.before) {
    board_.open(options_.before->folder, options_.before->provenance);
    board_.set_checkpoint(options_.before->checkpoint);
  }
  if (!options_.local) return;
  slot_.local_rank = options_.local->rank;
  slot_.local_ranks = options_.local->ranks;
}

// A write under way needs what the attempt holds.
Attempt::~Attempt() {
  if (checkpoints_) checkpoints_->settle();
}

void Attempt::read_config() {
  Config asked;
  all_or_none(group_, [&] {
    asked = options_.load_config(notes_);
    check_combinations(asked);
  });
  require_same(group_, "version", fmt::format("{} ({})", kVersion, commit()));
  require_same(group_, "config", hex64(checksum64(echo_config(asked))));
  all_or_none(group_, [&] {
    config_ = config_for_ranks(std::move(asked), slot_.ranks, notes_);
    require_wrapped();
    const int launched = options_.crew ? options_.crew->ranks_of_launch() : slot_.ranks;
    check_soft(config_, launched);
    check_faults(config_, launched, options_.threads);
    require_job_end();
  });
  if (slot_.rank != 0) return;
  if (const std::string note = job_end_note(config_.run.stop_before_end_s); !note.empty()) log_warning("{}", note);
}

// Only `echelon train` has a launch for one run alone, whose transport it wraps; cells of a study have the network too.
void Attempt::require_wrapped() const {
  if (!config_.fault.inject.empty() && !options_.faults)
    refuse(config_, "fault.inject", "faults are for runs of `echelon train`, not for cells of a study; leave them out");
  if (config_.exchange.check_messages && !engine_.transport().checks_messages())
    refuse(config_, "exchange.check_messages",
           "messages are checked in runs of `echelon train`, not in cells of a study; leave it out");
  if (!config_.network.rate.empty() && engine_.transport().shape() == nullptr)
    refuse(config_, "network.rate",
           "messages are slowed down only in runs of `echelon train` and in cells of a study; leave it out");
}

RunInputs Attempt::open_inputs() {
  std::optional<RunInputs> inputs;
  all_or_none(group_, [&] { inputs = echelon::open_inputs(config_); });
  return std::move(*inputs);
}

void Attempt::resolve_split(const RunInputs& inputs) {
  if (!is_unresolved(config_.parallel)) return;
  resolved_ = echelon::resolve_split(config_, inputs, device_options(config_.device, slot_), engine_, kControlChannel);
  config_.parallel = resolved_.parallel;
}

void Attempt::join_groups() {
  Roles roles;
  std::optional<Mesh> mesh;
  all_or_none(group_, [&] {
    const Transport& transport = engine_.transport();
    roles = roles_of(config_, slot_.ranks);
    mesh = mesh_of_workers(config_, roles, transport.hosts(), transport.host_names());
  });
  rank_groups_.emplace(roles, std::move(*mesh), engine_);
  if (rank_groups_->mesh().splits()) model_group_.emplace(rank_groups_->group(), kReplicaChannel);
}

void Attempt::open_device() {
  threads_ = threads_of(config_.device, slot_);
  std::string warning;
  all_or_none(group_, [&] {
    const std::string kind = device_on(config_.device, slot_).kind;
    const DeviceOptions options = device_options(config_.device, slot_, &warning);
    device_ = options_.open_device ? options_.open_device(kind, options) : echelon::open_device(kind, options);
    if (!device_->supports(config_.device.dtype))
      throw ConfigError(fmt::format("device.dtype = \"{}\" is not supported by device '{}'",
                                    name_of(config_.device.dtype), device_->name()));
    if (config_.device.pace_ms != 0 && !device_->on_host())
      refuse(config_, "device.pace_ms",
             fmt::format("device.pace_ms paces ops that are complete when their call returns, but {} runs them "
                         "asynchronously; write device.kind = \"onednn\"",
                         device_->name()));
  });
  if (config_.device.kinds.empty()) require_same(group_, "kind of device", std::string(device_->name()));
  if (config_.train.reproducible)
    require_same(group_, "device, which train.reproducible = true needs to be one processor and number of threads",
                 device_->describe());
  if (!warning.empty() && device_->name() == "cuda") log_warning("{}", warning);
}

void Attempt::build() {
  config_.exchange =
      tuning_.settle(config_.exchange, start_, rank_groups_->replicas(),
                     rank_groups_->mesh().splits() ? &rank_groups_->model() : nullptr, engine_.transport(),
                     kStrategyChannel, plan_->part.graph.parameters(), wide_of(config_.device.dtype));
  engine_.limit(static_cast<int>(config_.exchange.messages_in_flight), static_cast<int>(config_.exchange.helpers));
  activation_exchange_ = std::make_unique<ActivationExchange>(
      *device_, rank_groups_->engines(), rank_groups_->mesh(), rank_groups_->coord(), plan_->part.cuts,
      config_.device.dtype, kCutsChannel, plan_->rank_batches.largest());
  all_or_none(group_, [&] {
    arenas_ = std::make_unique<Arenas>(*device_, plan_->part.graph.parameters(), wide_of(config_.device.dtype));
    if (rank_groups_->mesh().splits())
      part_norms_ = std::make_unique<PartNorms>(rank_groups_->model(), rank_groups_->shards(), kNormsChannel,
                                                rank_groups_->coord().shard == 0);
    optimiser_ =
        std::make_unique<Optimiser>(config_.optimiser, *arenas_, loss_scaling_of(config_.device), part_norms_.get());
    strategy_ = make_strategy(
        config_.exchange, {.arenas = *arenas_,
                           .optimiser = *optimiser_,
                           .engine = rank_groups_->exchange(),
                           .first_channel = kStrategyChannel,
                           .seed = config_.seed,
                           .part = part_name(rank_groups_->mesh(), rank_groups_->mesh().part(rank_groups_->coord())),
                           .role = rank_groups_->role(),
                           .steps_per_epoch = plan_->steps_per_epoch,
                           .recorded = replay_.recorded,
                           .may_lose_workers = goes_on(),
                           .noise_scale = config_.monitor.noise_scale});
    batch_norm_sum_ = std::make_unique<BatchNormSum>(*device_, rank_groups_->data_parallel_peers(), kSumsChannel,
                                                     *strategy_, config_.exchange);
    arenas_->initialise(config_.seed);
  });
  state_.global_batch = plan_->batch.global;
  state_.replicas = plan_->shards.replicas();
  state_.steps_per_epoch = plan_->steps_per_epoch;
}

void Attempt::restore() {
  phase_.enter("start");
  if (start_.first_step()) {
    if (!start_.weights.empty()) all_or_none(group_, [&] { load_weights(start_.weights, *arenas_); });
    broadcast_weights(*arenas_, rank_groups_->exchange(), kWeightsChannel);
  } else
    all_or_none(group_, [&] {
      echelon::restore(start_, config_, *plan_, rank_groups_->replica(),
                       {state_, tuning_, *arenas_, *optimiser_, *strategy_});
    });
  if (rank_groups_->trains())
    draws_ = make_draws(config_, *plan_, state_, rank_groups_->data_parallel_peers(), kDrawsChannel);
}

// Rows that are distributed over the replicas of this rank's part of the model.
GatheredTensors Attempt::gather_for_checkpoint() {
  Group all(rank_groups_->exchange(), kControlChannel), replicas(rank_groups_->data_parallel_peers(), kControlChannel);
  if (draws_) state_.open = draws_->gather(replicas);
  GatheredTensors rows = gather_rows(all, [this](StateVisitor& visitor) { strategy_->visit_state(visitor); });
  rows.merge(gather_rows(replicas, [this](StateVisitor& visitor) { runner_->visit_state(visitor); }));
  return rows;
}

void Attempt::require_steps_after_warmup() const {
  if (options_.warmup_steps > 1 && options_.warmup_steps >= plan_->total_steps)
    throw ConfigError(fmt::format("study.warmup_steps = {} leaves none of the {} of this cell to measure",
                                  options_.warmup_steps, counted(plan_->total_steps, "step")));
}

int Attempt::run_or_throw() {
  read_config();
  start_watchdog();
  RunInputs inputs = open_inputs();
  resolve_split(inputs);
  join_groups();
  all_or_none(group_, [&] {
    plan_.emplace(plan_run(config_, rank_groups_->mesh(), rank_groups_->coord(), std::move(inputs), resolved_.node_s));
    require_steps_after_warmup();
  });
  replay_ = open_replay(config_, *plan_, rank_groups_->roles(), group_);
  start_ = decide_start(config_, *plan_, group_, lock_);
  conclude_before();
  if (start_.finished) {
    const std::string where = start_.ranks > 0 ? " on " + counted(start_.ranks, "rank") : "";
    log_info("already finished{}: {}, in {}", where, counted(start_.step, "step"), start_.folder.attempt);
    log_info("to train again, on {}: --set run.restart=never, or another name", counted(slot_.ranks, "rank"));
    group_.barrier();
    return start_.goal_missed ? kExitUnmet : kExitOk;
  }
  staged_ = stage_data(config_.data, *plan_, rank_groups_->replica(), slot_, group_);
  open_device();
  provenance_ = provenance(config_);
  board_.open(start_.folder, provenance_);
  if (!start_.first_step() && !start_.other_run)
    board_.set_checkpoint("checkpoints/" + std::filesystem::path(start_.checkpoint).filename().string());
  board_.set_damaged(start_.damaged);
  phase_.at_step(start_.step);
  board_.at_step(start_.step);
  all_or_none(group_, [&] {
    if (slot_.rank != 0) return;
    log_to_file(start_.folder.attempt + "/run.log");
    conclude_died(start_.folder);
    write_attempt_config(start_.folder, config_);
    board_.start_beating();
  });
  if (const std::string text = unshared_results(start_.folder, slot_, group_); !text.empty()) log_warning("{}", text);
  if (options_.faults) options_.faults->begin(start_.folder, slot_.host, phase_, config_.run.restart == Restart::never);
  build();
  log_banner();
  restore();
  all_or_none(group_, [&] {
    replay_.check_weights(*arenas_);
    if (device_->computes()) checksum_at_start_ = hex64(arenas_->checksum());
    runner_ = make_stepper({config_, *plan_, *rank_groups_, *arenas_, *strategy_, *optimiser_, *batch_norm_sum_,
                            *activation_exchange_, phase_, state_, draws_.get(), options_.faults});
    restore_carried(start_, *runner_);
    make_hooks();
  });
  record_arrivals();
  std::vector<Hook*> hooks;
  for (const auto& hook : hooks_) hooks.push_back(hook.get());
  control_.emplace(engine_, kControlWordsChannel, strategy_->progress(), replay_.script,
                   NewsHearer{.phase = &phase_, .hang_timeout_s = config_.run.hang_timeout_s},
                   model_group_ ? &*model_group_ : nullptr);
  wire_matrix_.emplace(engine_);
  link_waits_.emplace(engine_, group_);
  Loop loop(config_, *plan_, rank_groups_->replica(), *runner_, group_, *control_, state_, phase_, std::move(hooks));
  return finish(loop.run());
}

}  // namespace echelon::inline run
