// SPDX-License-Identifier: Apache-2.0
#include "run/resume.hpp"

#include <fmt/format.h>

#include <optional>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/run_state.hpp"
#include "config/goal.hpp"
#include "job/agree.hpp"
#include "job/launch.hpp"
#include "report/record.hpp"
#include "report/status.hpp"
#include "run/initial_weights.hpp"
#include "run/other_run.hpp"
#include "train/hooks/monitor.hpp"

namespace echelon::inline run {
namespace {

// Returns the decision for a run that some attempt has finished: by its steps, by reaching the goal that is set now, or
// on a plateau. None if no attempt has.
std::optional<Decision> finished_already(const Config& config, const std::string& run, std::int64_t total_steps) {
  const auto earlier = attempts_of(run);
  if (earlier.empty()) return {};
  const auto status = read_status(earlier.back());
  if (!status || status->state != "finished") return {};
  Decision decision;
  if (config.goal.metric != GoalMetric::none) {
    const RunRecord record = read_run(earlier.back());
    decision.goal_missed = !goal_met(config.goal, test_figures(record));
  }
  const bool at_goal = config.goal.stop && !decision.goal_missed;
  const bool flat = config.monitor.plateau == Watch::stop && status->reason.find(kPlateau) != std::string::npos;
  if (status->step < total_steps && !at_goal && !flat) return {};
  decision.finished = true;
  decision.folder = {run, earlier.back()};
  decision.step = status->step;
  decision.ranks = status->provenance.ranks;
  decision.told = fmt::format("finished already, at step {}: {}", count_text(status->step), earlier.back());
  return decision;
}

void resume_own(const CheckpointInfo& own, Decision& decision) {
  decision.checkpoint = own.path;
  decision.step = own.step;
  decision.told = fmt::format("from step {}: {}", own.step, own.path);
}

// Decides for a run without a checkpoint of its own.
void begin(const Config& config, const RunPlan& plan, const RunFolder& folder, Decision& decision) {
  if (!config.model.weights.empty() && config.run.restart != Restart::require) {
    const InitialWeights found = foresee_weights(config, plan.graph);
    decision.weights = found.path;
    decision.told = found.text();
    return;
  }
  if (config.run.resume_from.empty()) {
    if (config.run.restart == Restart::require)
      throw EnvironmentError(
          fmt::format("run.restart = \"require\", but {} holds no good checkpoint", folder.checkpoints()));
    if (config.run.restart == Restart::automatic) decision.told = other_runs_text(config);
    return;
  }
  const TakeUp taken = take_up(config, plan);
  decision.checkpoint = taken.checkpoint;
  decision.step = taken.step();
  decision.other_run = true;
  decision.weights_only = taken.weights_only;
  decision.optimiser = taken.optimiser;
  decision.residuals = taken.residuals;
  decision.told = take_up_text(taken);
}

// Finds the newest good checkpoint of the run itself, and the damaged ones that are newer.
std::optional<CheckpointInfo> own_checkpoint(const std::string& folder, std::vector<DamagedCheckpoint>& damaged) {
  settle_manifests(folder);
  const auto found = find_checkpoint(folder, &damaged);
  if (found || damaged.empty()) return found;
  std::string texts;
  for (const DamagedCheckpoint& one : damaged) texts += fmt::format("{}{}", texts.empty() ? "" : "; ", one.text);
  throw DataError(
      fmt::format("{}: all checkpoints are damaged ({}). Restore one from a copy, or train from the first step: --set "
                  "run.restart=never moves them aside",
                  folder, texts));
}

void set_aside(const RunFolder& folder, const std::vector<DamagedCheckpoint>& damaged, Decision& decision) {
  if (damaged.empty()) return;
  set_damaged_aside(folder.checkpoints(), damaged, folder.damaged(), {decision.checkpoint, decision.step});
  log_warning("damaged checkpoints were moved to {}", folder.damaged());
  for (const DamagedCheckpoint& one : damaged) decision.damaged.push_back(one.text);
}

Decision decide_on_rank_0(const Config& config, const RunPlan& plan, RunLock& lock) {
  const std::string run = run_path(config);
  const bool anew = config.run.restart == Restart::never;
  const Decision foreseen = foresee_start(config, plan);
  if (foreseen.finished) {
    tidy_finished(foreseen.folder, lock);
    return foreseen;
  }
  make_folders(run);
  lock.take(run, job_id());
  if (!anew)  // finished meanwhile, by the process that held the lock before
    if (auto finished = finished_already(config, run, plan.total_steps)) {
      tidy_finished(finished->folder, lock);
      return *finished;
    }
  Decision decision;
  std::vector<DamagedCheckpoint> damaged;
  const auto own = anew ? std::nullopt : own_checkpoint(foreseen.folder.checkpoints(), damaged);
  if (own)
    resume_own(*own, decision);
  else
    decision = foreseen;
  decision.folder = make_attempt(config);
  set_aside(decision.folder, damaged, decision);
  if (anew) {
    set_checkpoints_aside(decision.folder);
  } else {
    const RecordsEnd records = own ? records_end_in(own->path) : RecordsEnd{.bytes = 0};
    cut_metrics(decision.folder, decision.step, records.attempt, records.bytes);
    remove_leftovers(decision.folder);
  }
  return decision;
}

// Ends each field with a zero byte, which no path holds.
std::string packed(const Decision& decision) {
  std::string text;
  const auto& d = decision;
  for (const std::string& field : {fmt::format("{:d} {:d} {} {} {:d} {:d} {:d} {:d}", d.finished, d.goal_missed, d.step,
                                               d.ranks, d.other_run, d.weights_only, d.optimiser, d.residuals),
                                   d.folder.run, d.folder.attempt, d.checkpoint, d.weights})
    text += field + '\0';
  return text;
}

void unpack(const std::string& text, Decision& decision) {
  std::istringstream fields(text);
  std::string numbers;
  std::getline(fields, numbers, '\0');
  std::getline(fields, decision.folder.run, '\0');
  std::getline(fields, decision.folder.attempt, '\0');
  std::getline(fields, decision.checkpoint, '\0');
  std::getline(fields, decision.weights, '\0');
  std::istringstream(numbers) >> decision.finished >> decision.goal_missed >> decision.step >> decision.ranks >>
      decision.other_run >> decision.weights_only >> decision.optimiser >> decision.residuals;
}

}  // namespace

Decision foresee_start(const Config& config, const RunPlan& plan) {
  Decision decision;
  decision.folder.run = run_path(config);
  require_within(config.run.results, decision.folder.run);
  if (config.run.restart != Restart::never) {
    if (auto finished = finished_already(config, decision.folder.run, plan.total_steps)) return *finished;
    if (const auto own = glance_at_newest(decision.folder.checkpoints())) {
      resume_own(*own, decision);
      return decision;
    }
  }
  begin(config, plan, decision.folder, decision);
  return decision;
}

Decision decide_start(const Config& config, const RunPlan& plan, Group& group, RunLock& lock) {
  Decision decision;
  all_or_none(group, [&] {
    if (group.rank() == 0) decision = decide_on_rank_0(config, plan, lock);
  });
  unpack(group.of_first(packed(decision)), decision);
  return decision;
}

}  // namespace echelon::inline run
