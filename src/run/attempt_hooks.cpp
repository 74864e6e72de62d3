// The watchdog of an attempt, its provenance, its banner, and its hooks, in the order in which the loop calls them.
#include <fmt/format.h>

#include <sstream>

#include "base/checksum.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/version.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/trained_data.hpp"
#include "config/parse.hpp"
#include "data/describe.hpp"
#include "exchange/facets.hpp"
#include "job/agree.hpp"
#include "job/job_end.hpp"
#include "job/signals.hpp"
#include "run/attempt.hpp"
#include "run/banner.hpp"
#include "train/hooks/agreement.hpp"
#include "train/hooks/arrivals.hpp"
#include "train/hooks/balance.hpp"
#include "train/hooks/divergence.hpp"
#include "train/hooks/evaluate.hpp"
#include "train/hooks/fault.hpp"
#include "train/hooks/monitor.hpp"
#include "train/hooks/progress.hpp"
#include "train/hooks/status.hpp"
#include "train/hooks/trace.hpp"

namespace echelon::inline run {
namespace {

constexpr int kPartsChannel = 0;  // of a model group: checkpoints
constexpr int kTraceChannel = 0;  // that of the world's group, which nothing else uses where hooks meet

// A rank that is silent for hang_timeout_s is lost, and the others agree on it: a wait so many times as long is a hang.
constexpr double kWaitsForTheLost = 3;
// For traces of other ranks, which look for the end of the run 5 times a second. A launcher kills all ranks about a
// second after one was lost.
constexpr double kTracePatience_s = 0.5;

}  // namespace

WatchdogOptions Attempt::watchdog_options() {
  WatchdogOptions options;
  options.hang_timeout_s = config_.run.hang_timeout_s * (goes_on() ? kWaitsForTheLost : 1);
  options.term_deadline_s = term_deadline_s();
  options.record_exit = [this](int code, const std::string& reason) {
    const bool hung = code == kExitLostRank;
    return board_.conclude(hung ? "failed" : "stopped", code, reason, hung ? phase_.step() : -1);
  };
  options.record_rank_error = [this](const std::string& reason) { board_.write_rank_error(slot_.rank, reason); };
  options.look = [this] {
    if (TraceHook* const trace = trace_hook_; trace && trace->under_way() && is_concluded(start_.folder.attempt))
      trace->leave();
  };
  options.leave = [this](const std::string& reason, int lost, bool first) {
    leave_trace(reason, lost < 0 ? std::vector<int>{} : std::vector{lost}, kTracePatience_s, first);
  };
  return options;
}

// Where the run goes on without lost workers, its crew finds them.
void Attempt::start_watchdog() {
  WatchdogOptions options = watchdog_options();
  const std::vector<std::string> processes = group_.gather(process_id_text());
  for (int rank = 0; rank < slot_.ranks && !goes_on(); ++rank)
    if (const std::string& process = processes[static_cast<std::size_t>(rank)]; rank != slot_.rank && is_near(process))
      options.others.push_back({rank, process});
  if (goes_on() && !options_.crew->watched()) options_.crew->watch(config_.run.hang_timeout_s);
  watchdog_ = std::make_unique<Watchdog>(engine_, phase_, std::move(options));
}

Provenance Attempt::provenance(const Config& config) {
  Provenance p;
  p.version = kVersion;
  p.git_hash = commit();
  p.config_hash = hex64(config_hash(config));
  p.mpi = engine_.transport().name();
  p.job_id = job_id();
  p.command_line = command_line();
  p.started = now_utc_text();
  p.process = group_.of_first(process_id_text());
  p.hosts = group_.gather(slot_.host);
  p.devices = group_.gather(device_ ? device_->describe() : std::string());
  p.seed = config.seed;
  p.ranks = slot_.ranks;
  p.lost = options_.lost;
  return p;
}

void Attempt::log_banner() {
  const BannerParts parts{config_, *plan_,   rank_groups_->mesh(), provenance_, start_,
                          slot_,   *device_, *strategy_,           threads_,    notes_};
  if (slot_.rank != 0) return;
  for (const std::string& line : banner_lines(parts)) log_info("{}", line);
  std::istringstream lines(resolved_.report);
  for (std::string line; std::getline(lines, line);) log_info("{}", line);
  tuning_.log_choice();
  if (replay_.is_on()) log_info("replay    {}", replay_.told);
  warn_without_checksums(plan_->train, config_.data.train);
  if (plan_->test) warn_without_checksums(*plan_->test, config_.data.test);
}

MonitorSetting Attempt::monitor_setting(std::function<void(const std::string&)> warn) const {
  MonitorSetting setting{.config = config_, .hosts = {}, .parts = {}, .total_steps = plan_->total_steps};
  const Mesh& mesh = rank_groups_->mesh();
  for (int rank = 0; rank < rank_groups_->roles().workers; ++rank) {
    setting.hosts.push_back(provenance_.hosts[static_cast<std::size_t>(rank)]);
    setting.parts.push_back(mesh.index_in_group(mesh.coord(rank)));
  }
  setting.reports = slot_.rank == 0;
  setting.left_s = left_of_job_s;
  setting.warn = std::move(warn);
  return setting;
}

void Attempt::make_hooks() {
  const bool first_rank = slot_.rank == 0;
  FaultInjector* const faults = options_.faults;
  if (faults) faults->check(config_, *arenas_);
  if (faults && faults->has(FaultKind::flip_weight))
    hooks_.push_back(std::make_unique<WeightFaultHook>(*faults, *arenas_, *strategy_));
  start_trace();
  hooks_.push_back(std::make_unique<AgreementHook>(config_.exchange.verify_every_steps, rank_groups_->mesh(), *arenas_,
                                                   *strategy_, group_));
  std::unique_ptr<MetricsHook> rows;
  if (first_rank)
    rows = std::make_unique<MetricsHook>(start_.folder.attempt + "/metrics.jsonl", config_.run.log_every_steps,
                                         config_.evaluate.metrics);
  MetricsHook* metrics = rows.get();
  auto goal = std::make_unique<GoalHook>(config_.goal);
  goal_ = goal.get();
  std::function<void(const std::string&)> warn;
  if (first_rank) warn = [](const std::string& text) { log_warning("{}", text); };
  auto monitor = std::make_unique<MonitorHook>(monitor_setting(warn), engine_.clock());
  monitor_ = monitor.get();
  hooks_.push_back(std::make_unique<EvaluateHook>(
      config_, *plan_, *rank_groups_, *arenas_, *strategy_, *activation_exchange_, group_,
      model_group_ ? &*model_group_ : nullptr, phase_, [this, metrics](const char* type, const EpochFigures& figures) {
        if (metrics) metrics->add_test(type, figures);
        if (type != std::string_view("test")) return;
        goal_->take(figures.test_loss, figures.test_accuracy);
        checkpoints_->take(figures.test_loss, figures.test_accuracy);
        monitor_->take(figures.step, figures.test_loss);
      }));
  hooks_.push_back(std::move(goal));
  hooks_.push_back(std::move(monitor));
  hooks_.push_back(std::make_unique<DivergenceHook>(config_, state_,
                                                    strategy_->progress().meets == Progress::Meets::every_step, warn));
  if (rows) hooks_.push_back(std::move(rows));
  hooks_.push_back(make_checkpoint_hook(metrics));
  if (config_.data.balance == Balance::speed && rank_groups_->mesh().replicas() > 1)
    hooks_.push_back(std::make_unique<BalanceHook>(*plan_, *runner_, group_, state_));
  const std::int64_t epoch = draws_ ? draws_->plan().first_epoch() : state_.epoch;
  const std::int64_t done = !draws_ && state_.at.epoch == epoch ? state_.at.step_in_epoch : 0;
  const std::int64_t uncoded = std::max(config_.exchange.codec_warmup_steps, config_.exchange.warmup_steps);
  auto statistics = std::make_unique<StatisticsHook>(options_.warmup_steps, TrainedBatches(epoch, done), uncoded);
  statistics_ = statistics.get();
  hooks_.push_back(std::move(statistics));
  hooks_.push_back(std::make_unique<StatusHook>(board_));
  if (!first_rank) return;
  hooks_.push_back(std::make_unique<ProgressHook>(config_.run, plan_->total_steps, config_.train.epochs,
                                                  strategy_->progress().meets == Progress::Meets::on_call));
}

// In the order of checkpoints.
void Attempt::visit_state(StateVisitor& visitor) {
  state_.visit_state(visitor);
  tuning_.visit_state(visitor);
  arenas_->visit_state(visitor);
  optimiser_->visit_state(visitor);
  strategy_->visit_state(visitor);
  runner_->visit_state(visitor);
}

// Of rank 0, and of the ranks of the first replica that hold a part of the model each.
std::unique_ptr<Hook> Attempt::make_checkpoint_hook(MetricsHook* metrics) {
  const MeshCoord& coord = rank_groups_->coord();
  const bool has_part = rank_groups_->mesh().parts() > 1 && rank_groups_->replica() == 0 && coord.spatial_shard == 0;
  std::optional<PartRanks> parts_of_model;
  if (has_part) parts_of_model.emplace(rank_groups_->model(), kPartsChannel);
  SaveOptions save;
  if (metrics) {
    save.training_data = to_text(trained_data_of(plan_->train));
    save.before_publish = [this, metrics] {
      metrics->sync();
      lock_.confirm();
    };
  }
  std::unique_ptr<CheckpointWriter> writer;
  if (metrics || has_part)
    writer = std::make_unique<CheckpointWriter>(start_.folder.checkpoints(), config_.checkpoint, save, parts_of_model);
  const CheckpointParts parts{.visit = [this](StateVisitor& visitor) { visit_state(visitor); },
                              .gather =
                                  [this] {
                                    lock_.confirm();
                                    return gather_for_checkpoint();
                                  },
                              .arenas = *arenas_,
                              .strategy = *strategy_,
                              .state = state_,
                              .phase = phase_,
                              .board = board_};
  auto hook = std::make_unique<CheckpointHook>(
      config_.checkpoint, start_.folder, parts, std::move(writer),
      [this, metrics] {
        return RecordsEnd{number_of(start_.folder.attempt), metrics->settle()};
      },
      [this, metrics](const CheckpointFigures& figures) {
        metrics->add_checkpoint(figures);
        if (!options_.faults) return;
        const std::string path = checkpoint_path(start_.folder.checkpoints(), figures.step);
        options_.faults->flip_checkpoint(figures.step, files_of(path));
      });
  checkpoints_ = hook.get();
  return hook;
}

void Attempt::start_trace() {
  const std::optional<TraceSteps> steps = trace_steps(config_);
  if (!steps) return;
  const bool own_pace = strategy_->progress().meets == Progress::Meets::on_call, trains = rank_groups_->trains();
  trace_.emplace(engine_, *steps, own_pace && !trains);
  const Mesh& mesh = rank_groups_->mesh();
  const std::string role =
      !trains         ? "server"
      : mesh.splits() ? fmt::format("part {} of replica {}", mesh.part(rank_groups_->coord()), rank_groups_->replica())
                      : "worker";
  auto hook = std::make_unique<TraceHook>(TraceSetting{.steps = *steps,
                                                       .folder = start_.folder.attempt,
                                                       .role = role,
                                                       .host = slot_.host,
                                                       .hosts = provenance_.hosts,
                                                       .channel = kTraceChannel,
                                                       .own_pace = own_pace},
                                          trace_->recorder(), engine_);
  trace_hook_ = hook.get();
  hooks_.push_back(std::move(hook));
}

// Of a run that ends by an error; `first`: of the rank that makes a trace of what all have left. Any thread.
void Attempt::leave_trace(const std::string& why, const std::vector<int>& lost, double patience_s, bool first) {
  TraceHook* const trace = trace_hook_;
  if (!trace) return;
  if (first)
    trace->leave_all(why, lost, patience_s);
  else
    trace->leave(patience_s);
}

// Before the other hooks, which may end the run. Collective.
void Attempt::record_arrivals() {
  if (strategy_->progress().meets != Progress::Meets::on_call || slot_.ranks == 1) return;
  const auto* serves = facet_of<ServesUpdates>(*strategy_);
  const std::int64_t own_pieces = serves ? serves->pieces_served() : 0;
  const std::vector<double> served = group_.gather(static_cast<double>(own_pieces));
  LedgerHeader header;
  header.rank = slot_.rank, header.ranks = slot_.ranks;
  header.workers = rank_groups_->roles().workers;
  for (const double pieces : served) {
    header.servers += pieces > 0 ? 1 : 0;
    header.pieces += static_cast<std::int64_t>(pieces);
  }
  if (header.servers == 0) return;  // the strategy has no servers
  header.first_step = start_.step, header.total_steps = plan_->total_steps;
  header.samples = plan_->shards.samples();
  header.config = provenance_.config_hash;
  header.data = trained_data_of(plan_->train).fingerprint;
  header.weights = hex64(arenas_->checksum());
  header.device = device_->describe();
  all_or_none(group_, [&] {
    // Of a split model, whose orders no run can repeat: the hook alone, which settles what servers told before
    // meetings.
    const bool records = own_pieces > 0 && !rank_groups_->mesh().splits();
    const std::string path = records ? arrivals_path(start_.folder.attempt, slot_.rank) : "";
    hooks_.insert(hooks_.begin(), std::make_unique<ArrivalsHook>(*strategy_, path, header));
  });
}

}  // namespace echelon::inline run
