#include "train/resume.hpp"

#include <fmt/format.h>

#include <optional>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "report/status.hpp"
#include "train/agree.hpp"
#include "train/checkpoint_files.hpp"
#include "train/launch.hpp"
#include "train/trained_data.hpp"

namespace echelon {
namespace {

// Of an attempt that finished the run; none where there is none.
std::optional<Decision> finished_already(const std::string& run, std::int64_t total_steps) {
  const auto earlier = attempts_of(run);
  if (earlier.empty()) return {};
  const auto status = read_status(earlier.back());
  if (!status || status->state != "finished" || status->step < total_steps) return {};
  Decision decision;
  decision.finished = true;
  decision.folder = {run, earlier.back()};
  decision.step = status->step;
  decision.ranks = status->provenance.ranks;
  return decision;
}

void find_start(const Config& config, Decision& decision) {
  const std::string checkpoints = decision.folder.checkpoints();
  std::optional<CheckpointInfo> found;
  if (config.run.restart == Restart::never) {
    set_checkpoints_aside(decision.folder);
  } else {
    std::vector<std::int64_t> damaged;
    found = find_checkpoint(checkpoints, &damaged);
    set_damaged_aside(checkpoints, damaged, decision.folder.damaged(), found);
    if (!damaged.empty()) log_warning("damaged checkpoints were moved to {}", decision.folder.damaged());
  }
  if (found) {
    decision.checkpoint = found->path;
    decision.step = found->step;
  } else if (config.run.restart == Restart::require) {
    throw EnvironmentError(
        fmt::format("run.restart = \"require\", but {} holds no good checkpoint", decision.folder.checkpoints()));
  }
}

Decision decide_on_rank_0(const Config& config, std::int64_t total_steps, RunLock& lock) {
  const std::string run = run_path(config);
  const bool anew = config.run.restart == Restart::never;
  if (!anew)
    if (auto finished = finished_already(run, total_steps)) return *finished;
  make_folders(run);
  lock.take(run, job_id());
  if (!anew)  // by whoever held the lock a moment ago
    if (auto finished = finished_already(run, total_steps)) return *finished;
  Decision decision;
  decision.folder = make_attempt(config);
  find_start(config, decision);
  if (!anew) {
    cut_metrics(decision.folder, decision.step);
    remove_leftovers(decision.folder);
  }
  return decision;
}

// Fields with a zero byte after each, which no path holds.
std::string packed(const Decision& decision) {
  std::string text;
  for (const std::string& field : {fmt::format("{} {} {}", decision.finished ? 1 : 0, decision.step, decision.ranks),
                                   decision.folder.run, decision.folder.attempt, decision.checkpoint})
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
  std::istringstream(numbers) >> decision.finished >> decision.step >> decision.ranks;
}

}  // namespace

Decision decide_start(const Config& config, std::int64_t total_steps, Group& group, RunLock& lock) {
  Decision decision;
  all_or_none(group, [&] {
    if (group.rank() == 0) decision = decide_on_rank_0(config, total_steps, lock);
  });
  unpack(group.gather(packed(decision))[0], decision);
  return decision;
}

void fit_state(RunState& state, const RunPlan& plan, const Decision& start) {
  const std::string& checkpoint = start.checkpoint;
  if (state.step != start.step || state.step_in_epoch < 0 || state.epoch < 0)
    throw DataError(fmt::format("{}: its position (step {}, step {} of epoch {}) is not that of step {}", checkpoint,
                                state.step, state.step_in_epoch, state.epoch, start.step));
  if (state.global_batch != plan.batch.global)
    throw ConfigError(
        fmt::format("{} was trained in steps of {} samples, this run would take {}: give it another name, "
                    "or set run.restart = \"never\"",
                    checkpoint, state.global_batch, plan.batch.global));
  const TrainedData here = trained_data_of(plan.train), there = trained_data_in(checkpoint);
  if (here.fingerprint != there.fingerprint)
    log_warning("{} was trained on other data ({} samples; data.train has {}): the position in the data is kept",
                checkpoint, count_text(there.samples), count_text(here.samples));
  const std::int64_t replicas = plan.shards.replicas();
  if (state.replicas != replicas)
    log_info("resuming on {} what {} began", counted(replicas, "replica"), counted(state.replicas, "replica"));
  if (state.steps_per_epoch != plan.steps_per_epoch) {
    log_warning("an epoch has {} steps now, it had {} when the checkpoint was written", plan.steps_per_epoch,
                state.steps_per_epoch);
    if (state.step_in_epoch >= plan.steps_per_epoch) {
      state.step_in_epoch = 0;
      ++state.epoch;
    }
  }
  state.replicas = replicas;
  state.steps_per_epoch = plan.steps_per_epoch;
}

}  // namespace echelon
