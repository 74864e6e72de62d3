// How an attempt ends: finished, stopped, or by an error that is recorded.
#include <fmt/format.h>

#include <cstdio>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/failure.hpp"
#include "base/log.hpp"
#include "base/stretch.hpp"
#include "comm/checked.hpp"
#include "config/goal.hpp"
#include "exchange/facets.hpp"
#include "job/agree.hpp"
#include "job/job_end.hpp"
#include "job/signals.hpp"
#include "run/attempt.hpp"
#include "run/staleness.hpp"
#include "run/summary.hpp"

namespace echelon::inline run {
namespace {

constexpr int kControlChannel = 0;      // of a group: agreement, metrics
constexpr double kTracePatience_s = 2;  // for traces of other ranks, which are waiting or end with the same error

}  // namespace

int Attempt::run() {
  const int code = run_and_report();
  if (options_.faults) options_.faults->end();
  return code;
}

int Attempt::run_and_report() {
  try {
    return run_or_throw();
  } catch (const LostRankError& error) {
    if (!error.goes_on) return fail(error);
    loss_ = error;
    return error.code();
  } catch (const CommonError& error) {
    // What this rank has sent in the last step and meeting reaches those that wait for it, before it leaves.
    try {
      if (control_) control_->flush();
      if (strategy_ && error.code() == kExitNumeric) strategy_->drain();
    } catch (const std::exception&) {  // the first error counts
    }
    return fail(error.code(), error.what(), true);
  } catch (const MessageError& error) {
    return fail(error.code(), fmt::format("{}, at step {}, in {}", error.what(), phase_.step(), phase_.name()), false);
  } catch (const std::exception& error) {
    const Failure failure = failure_of(error);
    return fail(failure.code, failure.text, false);
  }
}

int Attempt::fail(int exit_code, const std::string& text, bool common) {
  begin_to_leave();
  if (checkpoints_) checkpoints_->settle();
  const bool logs = slot_.rank == 0 || !common;
  const std::string message = common || slot_.ranks == 1 ? text : fmt::format("rank {}: {}", slot_.rank, text);
  if (logs) {
    flush_log();
    std::fprintf(stderr, "echelon: error: %s\n%s", message.c_str(), exit_code == kExitInternal ? kReportIt : "");
    std::fflush(stderr);
    bool first = false;
    try {
      first = board_.conclude("failed", exit_code, message, phase_.step());
      board_.write_rank_error(slot_.rank, message);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "echelon: the status could not be written: %s\n", error.what());
    }
    leave_trace(message, {}, kTracePatience_s, first);
    flush_log();
  } else
    leave_trace(text, {}, 0, false);
  if (!common && slot_.ranks > 1) options_.end_world(exit_code);
  return exit_code;
}

// From here on a rank that does not come changes nothing about the run's end, so that it must not end with 7.
void Attempt::enter_end_of_run() {
  if (!options_.launch_watched) return;
  watchdog_.reset();
  current_stretch().run_has_ended = true;
}

int Attempt::finish(Ending ending) {
  begin_to_leave();
  activation_exchange_->finish();
  if (draws_) draws_->close();
  const bool finished = ending == Ending::finished;
  const bool missed = config_.goal.metric != GoalMetric::none && !goal_->met();
  const int code = finished                    ? (missed ? kExitUnmet : kExitOk)
                   : ending == Ending::requeue ? kExitRequeue
                                               : kExitInterrupted;
  const double steps = static_cast<double>(std::max<std::int64_t>(1, state_.step - start_.step));
  const LinkWaits waits = link_waits_->collect(steps);
  const SummaryParts parts{config_,
                           *plan_,
                           *rank_groups_,
                           provenance_,
                           start_.folder,
                           slot_,
                           *device_,
                           *arenas_,
                           *strategy_,
                           *statistics_,
                           *runner_,
                           *activation_exchange_,
                           wire_matrix_->card(),
                           waits,
                           state_,
                           checksum_at_start_,
                           threads_};
  Group peers(rank_groups_->peers(), kControlChannel);
  const auto* serves = facet_of<ServesUpdates>(*strategy_);
  const std::vector<StalenessTally> staleness =
      gather_staleness(serves ? serves->staleness() : std::vector<StalenessTally>(), group_);
  RunFigures summary = collect_summary(parts, group_, peers, staleness, finished ? "finished" : "stopped", state_.step);
  checkpoints_->add_to(summary);
  summary.damaged_checkpoints = start_.damaged;
  const std::string wire = wire_matrix_->collect(group_, state_.step, waits);
  all_or_none(group_, [&] {
    if (slot_.rank != 0) return;
    write_summary(summary, parts);
    if (!wire.empty()) write_file_whole(start_.folder.attempt + "/wire.json", wire);
    write_staleness(staleness, start_.folder);
    const bool in_time = job_end_is_near(config_.run.stop_before_end_s);
    const std::string why = in_time                    ? "the job ends soon (run.stop_before_end_s)"
                            : !monitor_->why().empty() ? monitor_->why()
                            : replay_.is_on()
                                ? "the recorded order of arrivals ends here, or a signal asked the run to stop"
                                : "asked to stop by a signal";
    const std::string met = goal_result(config_.goal, summary.test_loss, summary.test_accuracy);
    board_.conclude(summary.state, code,
                    finished ? met + (!met.empty() && monitor_->ends_run() ? "; " : "") +
                                   (monitor_->ends_run() ? monitor_->why() : "")
                             : fmt::format("{}; checkpoint of step {}", why, state_.step),
                    state_.step);
    enter_end_of_run();
    log_info("{}", summary_text(summary, parts, board_.checkpoint()));
    if (const std::string late = pace_warning(summary, statistics_->steps()); !late.empty()) log_warning("{}", late);
    for (const std::string& finding : summary.findings) log_warning("{}", finding);
    if (finished && config_.goal.metric != GoalMetric::none) log_info("goal      {}", met);
    if (!finished) log_info("stopped early, {}: the same command continues from step {}", why, state_.step);
    flush_log();
  });
  enter_end_of_run();
  group_.barrier();
  return code;
}

}  // namespace echelon::inline run
