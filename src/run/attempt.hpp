// One attempt at a run, on one rank: from the config to the exit code. All ranks of the world, servers included, make
// one each and call run(); it is collective.
//
//   read and compare configs -> plan -> resume or start -> device, model, strategy -> loop -> summary
//
// An error of one rank before the first step becomes an error of all ranks (all_or_none), so that all exit normally.
// After that an error of one rank alone ends the world by AttemptOptions::end_world.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/run_state.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "config/schema.hpp"
#include "data/stage_folder.hpp"
#include "device/arenas.hpp"
#include "device/device.hpp"
#include "exchange/batch_norm_sum.hpp"
#include "exchange/part_norms.hpp"
#include "exchange/strategy.hpp"
#include "fault/injector.hpp"
#include "job/crew.hpp"
#include "job/launch.hpp"
#include "job/phase.hpp"
#include "job/status_board.hpp"
#include "job/watchdog.hpp"
#include "optim/optimiser.hpp"
#include "parallel/activation_exchange.hpp"
#include "parallel/rank_groups.hpp"
#include "run/link_waits.hpp"
#include "run/replay.hpp"
#include "run/resolve_split.hpp"
#include "run/resume.hpp"
#include "run/trace_recording.hpp"
#include "run/tuning.hpp"
#include "run/wire_matrix.hpp"
#include "train/draw_queue.hpp"
#include "train/hooks/checkpoint.hpp"
#include "train/hooks/goal.hpp"
#include "train/hooks/hook.hpp"
#include "train/hooks/metrics.hpp"
#include "train/hooks/monitor.hpp"
#include "train/hooks/statistics.hpp"
#include "train/hooks/trace.hpp"
#include "train/loop.hpp"
#include "train/run_plan.hpp"
#include "train/stepper.hpp"

namespace echelon::inline run {

// An attempt that has lost workers, until the next one has begun: only then its end is known to be true.
struct HandedOver {
  RunFolder folder;
  Provenance provenance;
  std::string checkpoint, reason;
  std::int64_t step = 0;
};

struct AttemptOptions {
  // Called on every rank; adds a note for each key of the file that was left out. Throws ConfigError.
  std::function<Config(std::vector<std::string>& notes)> load_config;
  std::function<void(int exit_code)> end_world;  // ends all ranks at once; not called in a world of one rank
  bool threads = false;                          // ranks are threads of one process
  Crew* crew = nullptr;                          // whose engine this is, of a run that goes on without lost workers
  std::vector<std::string> lost = {};            // workers, before this attempt
  std::optional<HandedOver> before = {};         // the attempt that was handed over to this one
  FaultInjector* faults = nullptr;               // of this rank, where the config has any
  // Opens the device of this rank; tests replace it.
  std::function<std::unique_ptr<Device>(std::string_view kind, const DeviceOptions& options)> open_device = {};
  std::optional<LocalPlace> local = {};  // where other attempts run beside this one: among all their ranks
  std::int64_t warmup_steps = 1;         // that rates leave out (StatisticsHook)
  bool launch_watched = false;           // by a LaunchWatch, which takes over once the run has ended
};

class Attempt {
 public:
  Attempt(Engine& engine, AttemptOptions options);
  ~Attempt();

  // Returns the exit code: 0, 75, 130, or that of an error, which was printed and recorded in status.json before.
  // Throws nothing. Blocks for the whole run; the calling thread is the compute thread.
  // An attempt with a crew may end by the loss of ranks: 7, nothing printed, and `loss` says so.
  int run();
  const std::optional<LostRankError>& loss() const { return loss_; }

  // After a loss, collective over those that are left; `lost` are ranks of this attempt's engine. The weights that are
  // left, and the position of the furthest worker, are saved as at a meeting: 0, and the next one resumes from there,
  // and concludes this one. Where nothing was trained yet, 0 too. Another exit code, printed and recorded, where
  // the run cannot go on: weights are lost, or the checkpoint cannot be written. Throws LostRankError where `left`
  // loses a rank; may then be called again with the next crew.
  int hand_over(Crew& left, const std::vector<int>& lost);
  // Of a loss after which nobody goes on. Returns its exit code.
  int fail(const LostRankError& loss);
  // The conclusion of the next attempt; none where no attempt of the run has a folder yet.
  const std::optional<HandedOver>& handed_over() const { return options_.before; }
  // Whether hand_over has saved anything; its last step.
  bool saved() const { return saved_; }
  std::int64_t last_step() const { return std::max({state_.step, state_.at.step, start_.step}); }

 private:
  int run_and_report();
  int run_or_throw();
  int fail(int exit_code, const std::string& text, bool common);

  void read_config();
  void require_wrapped() const;
  void require_steps_after_warmup() const;
  void start_watchdog();
  RunInputs open_inputs();
  void resolve_split(const RunInputs& inputs);
  void join_groups();
  void open_device();
  void build();
  void restore();
  void make_hooks();
  MonitorSetting monitor_setting(std::function<void(const std::string&)> warn) const;
  void start_trace();
  void leave_trace(const std::string& why, const std::vector<int>& lost, double patience_s, bool first);
  void record_arrivals();
  Provenance provenance(const Config& config);
  void log_banner();
  std::unique_ptr<Hook> make_checkpoint_hook(MetricsHook* metrics);
  int finish(Ending ending);
  void enter_end_of_run();
  void conclude_before();
  void visit_state(StateVisitor& visitor);
  GatheredTensors gather_for_checkpoint();
  bool goes_on() const { return options_.crew && config_.run.on_lost_worker == OnLostWorker::go_on; }
  WatchdogOptions watchdog_options();
  void save_what_is_left(Group& living, const std::vector<int>& lost);

  Engine& engine_;
  std::optional<WireMatrix> wire_matrix_;
  std::optional<LinkWaitsOfRun> link_waits_;
  AttemptOptions options_;
  Group group_;  // the world
  HostSlot slot_;
  std::optional<RankGroups> rank_groups_;
  std::optional<Group> model_group_;  // of a split model: the ranks of this replica
  PhaseBoard phase_;                  // by the engine's clock
  StatusBoard board_;
  Config config_;
  std::vector<std::string> notes_;  // on keys that were changed
  ResolvedSplit resolved_;
  RunLock lock_;  // rank 0's; ends after all that writes into the run's folder
  std::optional<RunPlan> plan_;
  std::unique_ptr<StageFolder> staged_;  // null but on a rank that has copied shards
  Decision start_;
  RunReplay replay_;
  int threads_ = 1;
  Provenance provenance_;
  RunState state_;
  std::string checksum_at_start_;  // of this rank's weights
  Tuning tuning_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Arenas> arenas_;
  std::unique_ptr<PartNorms> part_norms_;  // null where nothing is split
  std::unique_ptr<Optimiser> optimiser_;
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<BatchNormSum> batch_norm_sum_;
  std::unique_ptr<ActivationExchange> activation_exchange_;
  std::unique_ptr<BatchDraws> draws_;  // null where each replica has its shard
  std::unique_ptr<Stepper> runner_;
  std::vector<std::unique_ptr<Hook>> hooks_;
  StatisticsHook* statistics_ = nullptr;
  GoalHook* goal_ = nullptr;
  CheckpointHook* checkpoints_ = nullptr;
  MonitorHook* monitor_ = nullptr;
  std::optional<Control> control_;  // once the loop begins
  bool saved_ = false;
  std::optional<LostRankError> loss_;
  std::optional<TraceRecording> trace_;           // where run.trace asks for it
  std::atomic<TraceHook*> trace_hook_ = nullptr;  // likewise; the watchdog's thread reads it
  std::unique_ptr<Watchdog> watchdog_;            // ends first
};

}  // namespace echelon::inline run
