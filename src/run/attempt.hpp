// SPDX-License-Identifier: Apache-2.0
// One attempt at a run, on one rank: from the config to the exit code. All ranks of the world, servers included, make
// one each and call run(); it is collective.
//
// An attempt is a sequence of phases. Each one is made from those before it, is complete when it exists, and stays:
//
//   Placed   role, place in the mesh, groups         Built    arenas, optimiser, strategy, state of the run
//   Agreed   config, plan, start                     Ready    stepper and hooks, at the first step of the attempt
//   Opened   folder, device, chosen exchange         Running  agreement of ranks, the loop
//
// An error of one rank before the first step becomes an error of all ranks (all_or_none), so that all exit normally.
// After that an error of a single rank ends the world by AttemptOptions::end_world.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "job/watchdog.hpp"
#include "run/running.hpp"

namespace echelon::inline run {

class Attempt {
 public:
  Attempt(Engine& engine, AttemptOptions options) : context_(engine, std::move(options)) {}
  ~Attempt() { settle_checkpoints(); }

  // Returns the exit code: 0, 75, 130, or that of an error, which was printed and recorded in status.json before.
  // Throws nothing. Blocks for the whole run; the calling thread is the compute thread.
  // An attempt with a crew may end by the loss of ranks: 7, nothing printed, and `loss` says so.
  int run();
  const std::optional<LostRankError>& loss() const { return loss_; }

  // After a loss, collective over the remaining ranks; `lost` are ranks of this attempt's engine. The remaining weights
  // and the position of the furthest worker are saved as at a meeting. Returns 0; the next attempt resumes from there
  // and concludes this one. Also returns 0 if nothing was trained yet. Returns another exit code, printed and recorded,
  // if the run cannot go on, because weights are lost or the checkpoint cannot be written. Throws LostRankError if
  // `left` loses a rank; may then be called again with the next crew.
  int hand_over(Crew& left, const std::vector<int>& lost);
  // After a loss with which the run ends. Returns its exit code.
  int fail(const LostRankError& loss);
  // The conclusion that the next attempt writes; none if no attempt of the run has a folder yet.
  const std::optional<HandedOver>& handed_over() const { return context_.options.before; }
  // True if hand_over has saved anything. last_step: updates done when the attempt ended.
  bool saved() const { return saved_; }
  std::int64_t last_step() const;

 private:
  // Time for which the rank that makes a trace waits for the traces of other ranks, which look for the end of the run 5
  // times a second.
  static constexpr double kTracePatience_s = 2;

  int run_and_report();
  int run_or_throw();
  void leave(int exit_code);
  int fail(int exit_code, const std::string& text, bool common);
  WatchdogOptions watchdog_options(const Config& config);
  void start_watchdog(const Config& config);
  void settle_checkpoints() {
    if (ready_) ready_->checkpoints.settle();
  }
  void leave_trace(const std::string& why, const std::vector<int>& lost, double patience_s, bool first);
  void save_what_is_left(Group& living, const std::vector<int>& lost);

  AttemptContext context_;
  WatchdogOptions watching_;  // of the config, but for the ranks of this host
  std::optional<Placed> placed_;
  std::optional<const Agreed> agreed_;
  std::optional<Opened> opened_;
  std::optional<Built> built_;
  std::optional<Ready> ready_;
  std::optional<Running> running_;
  bool saved_ = false;
  std::optional<LostRankError> loss_;
  std::atomic<TraceHook*> trace_ = nullptr;  // the hook of `ready_` if run.trace asks for it; other threads read it
  std::optional<Watchdog> watchdog_;         // ends first
};

}  // namespace echelon::inline run
