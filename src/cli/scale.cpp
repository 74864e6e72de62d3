// echelon scale: the cells of a study, one after another, each on part of the ranks of one launch.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/on_ranks.hpp"
#include "cli/options.hpp"
#include "cli/study_ledger.hpp"
#include "cli/study_pages.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "comm/mpi/world.hpp"
#include "config/parse.hpp"
#include "job/agree.hpp"
#include "job/launch.hpp"
#include "job/signals.hpp"
#include "run/attempt.hpp"
#include "study/placement.hpp"
#include "study/study.hpp"

namespace echelon::cli {
namespace {

// Ranks that take no part in a cell sleep between looks.
constexpr EngineOptions kIdle{.yield_s = 0, .patience_s = 0, .sleep_s = 1e-3, .long_sleep_s = 50e-3};

// This rank's part in a cell; its exit code.
int train_cell(const StudyPlan& study, const StudyCell& cell, std::unique_ptr<Transport> part) {
  begin_run();
  Engine engine(std::move(part));
  const auto load = [&](std::vector<std::string>& notes) { return load_config(study.file, cell.sets, &notes); };
  return Attempt(engine, {.load_config = load, .end_world = &MpiWorld::abort}).run();
}

// All ranks: the exit code of the cell.
int run_cell(const StudyPlan& study, const StudyCell& cell, Engine& launch, Group& all) {
  const std::vector<int> members = members_of(launch.transport().hosts(), cell.ranks, study.placement);
  const auto place = std::find(members.begin(), members.end(), launch.rank());
  const bool takes_part = place != members.end();
  std::unique_ptr<Transport> part =
      launch.split_transport(takes_part ? 1 : 0, static_cast<int>(place - members.begin()));
  int code = kExitOk;
  if (takes_part) {
    std::optional<StudyHeartbeat> heartbeat;
    if (launch.rank() == 0) heartbeat.emplace(cell);
    code = train_cell(study, cell, std::move(part));
  }
  return static_cast<int>(all.max(code));
}

int stop_by_signal(Group& all) {
  const SignalWishes wishes = take_signal_wishes();
  return static_cast<int>(all.max(wishes.interrupt ? kExitInterrupted : wishes.requeue ? kExitRequeue : kExitOk));
}

// All ranks; `ledger` on rank 0. Returns 0, or the code of a stop by a signal.
int run_cells(const StudyPlan& study, Engine& launch, StudyLedger* ledger) {
  Group all(launch, 0);
  for (;;) {
    const StudyCell* next = ledger ? ledger->next() : nullptr;
    const std::string told = all.gather(next ? to_line(*next) : "")[0];
    if (told.empty()) return kExitOk;
    const double start_s = now_s();
    const int code = run_cell(study, cell_of_line(told), launch, all);
    if (ledger) ledger->end(code, now_s() - start_s);
    if (code == kExitRequeue || code == kExitInterrupted) return code;
    if (const int stop = stop_by_signal(all); stop != kExitOk) return stop;
  }
}

StudyPlan study_of(const ScaleOptions& options) {
  StudyPlan study = load_study(options.study, options.sets);
  for (const std::int64_t k : options.ranks)
    if (std::find(study.ranks.begin(), study.ranks.end(), k) == study.ranks.end())
      throw ConfigError(
          fmt::format("--ranks {}: not a size of the study, whose ranks are {}", k, fmt::join(study.ranks, ", ")));
  if (!options.ranks.empty()) study.ranks = options.ranks;
  std::sort(study.ranks.begin(), study.ranks.end());
  return study;
}

StudyPlan study_for(const ScaleOptions& options, int ranks) {
  StudyPlan study = study_of(options);
  if (study.ranks.back() > ranks)
    throw ConfigError(fmt::format(
        "{}: the study goes up to {} ranks and this launch has {}; start it with mpirun -n {} (or srun), or name sizes "
        "that fit: --ranks 1,2",
        study.file, study.ranks.back(), ranks, study.ranks.back()));
  return study;
}

// All ranks.
int run_study(const ScaleOptions& options, Engine& launch) {
  Group all(launch, 0);
  StudyPlan study;
  all_or_none(all, [&] { study = study_for(options, launch.size()); });
  std::unique_ptr<StudyLedger> ledger;
  if (launch.rank() == 0) {
    const GoalConfig goal = load_config(study.file, study.sets).goal;
    ledger = std::make_unique<StudyLedger>(study, goal, launch.transport().hosts());
    ledger->begin();
  }
  const int stop = run_cells(study, launch, ledger.get());
  int code = stop;
  if (ledger) {
    const bool met = ledger->search()
                         ? print_search(study, *ledger->search(), ledger->cells())
                         : print_study(load_study(options.study, options.sets));  // sizes of other jobs too
    if (const auto left = static_cast<std::int64_t>(ledger->left()); left > 0)
      fmt::print("{} left: {}\n", counted(left, study.search ? "trial" : "cell"),
                 stop != kExitOk ? "the same command goes on" : "a larger study.budget_hours runs them");
    if (stop == kExitOk && (ledger->any_failed() || (ledger->left() == 0 && !met))) code = kExitUnmet;
  }
  return static_cast<int>(all.max(code));
}

}  // namespace

int run_scale(const ScaleOptions& options) {
  if (options.list || options.report || options.slurm) {
    const StudyPlan study = study_of(options);
    if (options.list) print_cells(study);
    if (options.slurm) write_jobs(study, options.submit);
    return !options.report || print_study(study) ? kExitOk : kExitUnmet;
  }
  prepare_process();
  if (!under_launcher()) (void)study_for(options, 1);  // refused before MPI is touched
  MpiWorld world;
  const SignalWatch signals;
  set_log_level(LogLevel::warning);
  Engine launch(world.transport(), kIdle);
  return ending_world(world, [&] { return run_study(options, launch); });
}

}  // namespace echelon::cli
