#include "train/resume.hpp"

#include <fmt/format.h>

#include <sstream>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "train/agree.hpp"
#include "train/checkpoint.hpp"

namespace echelon {
namespace {

Decision decide_on_rank_0(const Config& config, std::int64_t total_steps) {
  Decision decision;
  const std::string run = run_path(config);
  const Restart restart = config.run.restart;
  const auto earlier = attempts_of(run);
  if (restart != Restart::never && !earlier.empty()) {
    const auto status = read_status(earlier.back());
    if (status && status->state == "finished" && status->step >= total_steps) {
      decision.finished = true;
      decision.folder = {run, earlier.back()};
      decision.step = status->step;
      decision.ranks = status->ranks;
      return decision;
    }
  }
  decision.folder = make_attempt(config);
  if (restart == Restart::never) {
    set_checkpoints_aside(decision.folder);
    return decision;
  }
  if (const auto found = find_checkpoint(decision.folder.checkpoints())) {
    decision.checkpoint = found->path;
    decision.step = found->step;
  } else if (restart == Restart::require) {
    throw EnvironmentError(
        fmt::format("run.restart = \"require\", but {} holds no good checkpoint", decision.folder.checkpoints()));
  }
  cut_metrics(decision.folder, decision.step);
  remove_leftovers(decision.folder);
  return decision;
}

}  // namespace

Decision decide_start(const Config& config, std::int64_t total_steps, Group& group) {
  Decision decision;
  all_or_none(group, [&] {
    if (group.rank() == 0) decision = decide_on_rank_0(config, total_steps);
  });
  const std::string told =
      group.gather(fmt::format("{}\n{}\n{}\n{}\n{}\n{}", decision.finished ? 1 : 0, decision.step, decision.ranks,
                               decision.folder.run, decision.folder.attempt, decision.checkpoint))[0];
  std::istringstream lines(told);
  std::string line;
  std::getline(lines, line);
  decision.finished = line == "1";
  std::getline(lines, line);
  decision.step = std::stoll(line);
  std::getline(lines, line);
  decision.ranks = std::stoi(line);
  std::getline(lines, decision.folder.run);
  std::getline(lines, decision.folder.attempt);
  std::getline(lines, decision.checkpoint);
  return decision;
}

void fit_state(RunState& state, const RunPlan& plan, const std::string& checkpoint) {
  if (state.global_batch != plan.batch.global)
    throw ConfigError(
        fmt::format("{} was trained in steps of {} samples, this run would take {}: give it another name, "
                    "or set run.restart = \"never\"",
                    checkpoint, state.global_batch, plan.batch.global));
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
