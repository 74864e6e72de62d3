// SPDX-License-Identifier: Apache-2.0
// The end of an attempt whose loop has ended without an error.
#include <fmt/format.h>

#include "base/atomic_file.hpp"
#include "base/log.hpp"
#include "config/goal.hpp"
#include "exchange/facets.hpp"
#include "job/agree.hpp"
#include "job/job_end.hpp"
#include "job/signals.hpp"
#include "run/running.hpp"
#include "run/staleness.hpp"
#include "run/summary.hpp"

namespace echelon::inline run {
namespace {

// Why an attempt was stopped before the run was finished.
std::string why_stopped(const Ready& r) {
  if (job_end_is_near(r.agreed.config.run.stop_before_end_s)) return "the job ends soon (run.stop_before_end_s)";
  if (!r.monitor.why().empty()) return r.monitor.why();
  return r.agreed.replay.is_on() ? "the recorded order of arrivals ends here, or a signal asked the run to stop"
                                 : "asked to stop by a signal";
}

}  // namespace

int end_attempt(Ready& r, Running& running, Ending ending, const std::function<void(int exit_code)>& has_ended) {
  begin_to_leave();
  r.opened.activations->finish();
  if (r.draws) r.draws->close();
  Group& world = r.context.group;
  const Config& config = r.agreed.config;
  const RunFolder& folder = r.agreed.start.folder;
  const std::int64_t step = r.built.state.step;
  const bool finished = ending == Ending::finished, has_goal = config.goal.metric != GoalMetric::none;
  const int code = finished                    ? (has_goal && !r.goal.met() ? kExitUnmet : kExitOk)
                   : ending == Ending::requeue ? kExitRequeue
                                               : kExitInterrupted;
  const LinkWaits waits =
      running.waits.collect(static_cast<double>(std::max<std::int64_t>(1, step - r.agreed.start.step)));
  const CardRates card = running.wire.card();
  const auto* serves = facet_of<ServesUpdates>(*r.built.strategy);
  const std::vector<StalenessTally> staleness =
      gather_staleness(serves ? serves->staleness() : std::vector<StalenessTally>(), world);
  RunFigures summary = collect_summary(r, card, waits, staleness, finished ? "finished" : "stopped");
  r.checkpoints.add_to(summary);
  summary.damaged_checkpoints = r.agreed.start.damaged;
  const std::string wire = running.wire.collect(world, step, waits);
  all_or_none(world, [&] {
    if (!r.context.is_first()) return;
    write_summary(summary, r);
    if (!wire.empty()) write_file_whole(folder.attempt + "/wire.json", wire);
    write_staleness(staleness, folder);
    const std::string why = why_stopped(r);
    const std::string met = goal_result(config.goal, test_figures(summary));
    const std::string by_monitor = r.monitor.ends_run() ? r.monitor.why() : "";
    r.context.board.conclude(summary.state, code,
                             finished ? met + (!met.empty() && r.monitor.ends_run() ? "; " : "") + by_monitor
                                      : fmt::format("{}; checkpoint of step {}", why, step),
                             step);
    has_ended(code);
    log_info("{}", summary_text(summary, r, r.context.board.checkpoint()));
    if (const std::string late = pace_warning(summary, r.statistics.steps()); !late.empty()) log_warning("{}", late);
    for (const std::string& finding : summary.findings) log_warning("{}", finding);
    if (finished && has_goal) log_info("goal      {}", met);
    if (!finished) log_info("stopped early, {}: the same command continues from step {}", why, step);
    flush_log();
  });
  has_ended(code);
  world.barrier();
  return code;
}

}  // namespace echelon::inline run
