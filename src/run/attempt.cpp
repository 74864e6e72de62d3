// SPDX-License-Identifier: Apache-2.0
#include "run/attempt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/error.hpp"
#include "base/failure.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "comm/checked.hpp"
#include "job/agree.hpp"
#include "job/closing.hpp"
#include "job/job_end.hpp"
#include "job/signals.hpp"
#include "run/banner.hpp"
#include "run/channels.hpp"
#include "run/restore.hpp"

namespace echelon::inline run {
namespace {

// A rank that is silent for hang_timeout_s is lost, and the others agree on it: a wait of this multiple is a hang.
constexpr double kWaitsForTheLost = 3;
// As kTracePatience_s, after a loss about a second before the launcher kills all ranks.
constexpr double kShortPatience_s = 0.5;

int already_finished(AttemptContext& context, const Decision& start) {
  const std::string where = start.ranks > 0 ? " on " + counted(start.ranks, "rank") : "";
  log_info("already finished{}: {}, in {}", where, counted(start.step, "step"), start.folder.attempt);
  log_info("to train again, on {}: --set run.restart=never, or another name", counted(context.slot.ranks, "rank"));
  context.group.barrier();
  return start.goal_missed ? kExitUnmet : kExitOk;
}

}  // namespace

WatchdogOptions Attempt::watchdog_options(const Config& config) {
  WatchdogOptions options;
  options.hang_timeout_s = config.run.hang_timeout_s * (context_.goes_on(config) ? kWaitsForTheLost : 1);
  options.term_deadline_s = term_deadline_s();
  options.record_exit = [this](int code, const std::string& reason) {
    const bool hung = code == kExitLostRank;
    return context_.board.conclude(hung ? "failed" : "stopped", code, reason, hung ? context_.phase.step() : -1);
  };
  options.record_rank_error = [this](const std::string& reason) {
    context_.board.write_rank_error(context_.slot.rank, reason);
  };
  options.look = [this] {
    if (TraceHook* const trace = trace_; trace && trace->under_way() && is_concluded(agreed_->start.folder.attempt))
      trace->leave();
  };
  options.leave = [this](const std::string& reason, int lost, bool first) {
    leave_trace(reason, lost < 0 ? std::vector<int>{} : std::vector{lost}, kShortPatience_s, first);
  };
  return options;
}

// If the run goes on without lost workers, its crew finds them.
void Attempt::start_watchdog(const Config& config) {
  watching_ = watchdog_options(config);
  WatchdogOptions options = watching_;
  const std::vector<std::string> processes = context_.group.gather(process_id_text());
  const bool goes_on = context_.goes_on(config);
  for (int rank = 0; rank < context_.slot.ranks && !goes_on; ++rank)
    if (const std::string& process = processes[static_cast<std::size_t>(rank)];
        rank != context_.slot.rank && is_near(process))
      options.others.push_back({rank, process});
  if (goes_on && !context_.options.crew->watched()) context_.options.crew->watch(config.run.hang_timeout_s);
  watchdog_.emplace(context_.engine, context_.phase, std::move(options));
}

// Leaves what was traced of a run that ends by an error; `first`: this rank makes a trace of what all have left. Any
// thread.
void Attempt::leave_trace(const std::string& why, const std::vector<int>& lost, double patience_s, bool first) {
  TraceHook* const trace = trace_;
  if (!trace) return;
  if (first)
    trace->leave_all(why, lost, patience_s);
  else
    trace->leave(patience_s);
}

int Attempt::run_or_throw() {
  Settings settings = read_settings(context_);
  start_watchdog(settings.config);
  RunInputs inputs = read_inputs(context_, settings);
  placed_.emplace(place_rank(context_, settings.config));
  agreed_.emplace(agree(context_, *placed_, std::move(settings), std::move(inputs)));
  if (agreed_->start.finished) {
    const int code = already_finished(context_, agreed_->start);
    leave(code);
    return code;
  }
  opened_.emplace(open_run(context_, *placed_, *agreed_));
  all_or_none(context_.group, [&] { built_.emplace(context_, *placed_, *agreed_, *opened_); });
  const Phases phases{context_, *placed_, *agreed_, *opened_, *built_};
  log_banner(phases);
  restore(phases);
  std::unique_ptr<BatchDraws> draws = make_draws(phases);
  all_or_none(context_.group, [&] {
    ready_.emplace(phases, std::move(draws));
    if (ready_->trace) trace_ = &*ready_->trace;
  });
  running_.emplace(*ready_);
  return end_attempt(*ready_, *running_, run_loop(running_->loop), [this](int code) { leave(code); });
}

// Only MPI has to be closed from here on.
void Attempt::leave(int exit_code) {
  if (context_.options.launch_limit_s == 0) return;
  watchdog_.reset();
  begin_closing(exit_code, context_.board.folder().attempt, context_.options.launch_limit_s);
}

int Attempt::run() {
  const int code = run_and_report();
  if (context_.options.faults) context_.options.faults->end();
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
    // The messages of the last step and meeting must reach the ranks that wait for them before this rank leaves.
    try {
      if (running_) running_->control.flush();
      if (built_ && error.code() == kExitNumeric) built_->strategy->drain();
    } catch (const std::exception&) {  // the first error counts
    }
    return fail(error.code(), error.what(), true);
  } catch (const MessageError& error) {
    const PhaseBoard& phase = context_.phase;
    return fail(error.code(), fmt::format("{}, at step {}, in {}", error.what(), phase.step(), phase.name()), false);
  } catch (const std::exception& error) {
    const Failure failure = failure_of(error);
    return fail(failure.code, failure.text, false);
  }
}

int Attempt::fail(int exit_code, const std::string& text, bool common) {
  begin_to_leave();
  settle_checkpoints();
  const HostSlot& slot = context_.slot;
  const std::string message = common || slot.ranks == 1 ? text : fmt::format("rank {}: {}", slot.rank, text);
  if (context_.is_first() || !common) {
    flush_log();
    std::fprintf(stderr, "echelon: error: %s\n%s", message.c_str(), exit_code == kExitInternal ? kReportIt : "");
    std::fflush(stderr);
    bool first = false;
    try {
      first = context_.board.conclude("failed", exit_code, message, context_.phase.step());
      context_.board.write_rank_error(slot.rank, message);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "echelon: the status could not be written: %s\n", error.what());
    }
    leave_trace(message, {}, kTracePatience_s, first);
    flush_log();
  } else
    leave_trace(text, {}, 0, false);
  if (!common && slot.ranks > 1) context_.options.end_world(exit_code);
  leave(exit_code);
  return exit_code;
}

int Attempt::fail(const LostRankError& loss) {
  settle_checkpoints();
  int first = 0;
  while (std::find(loss.lost.begin(), loss.lost.end(), first) != loss.lost.end()) ++first;
  if (context_.slot.rank != first) {
    leave_trace(loss.what(), loss.lost, 0, false);
    return loss.code();
  }
  log_error("{}", loss.what());
  flush_log();
  try {
    context_.board.conclude("failed", loss.code(), loss.what(), context_.phase.step());
  } catch (const Error& error) {
    log_error("the status could not be written: {}", error.what());
  }
  leave_trace(loss.what(), loss.lost, kTracePatience_s, true);
  return loss.code();
}

}  // namespace echelon::inline run
