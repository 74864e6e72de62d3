// SPDX-License-Identifier: Apache-2.0
#include "cli/study_lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "cli/study_heartbeat.hpp"
#include "cli/study_verbs.hpp"
#include "comm/group.hpp"
#include "comm/mpi/world.hpp"
#include "config/parse.hpp"
#include "job/agree.hpp"
#include "job/launch.hpp"
#include "job/shaped_network.hpp"
#include "job/signals.hpp"
#include "run/attempt.hpp"
#include "study/placement.hpp"

namespace echelon::cli {
namespace {

constexpr std::chrono::milliseconds kWait{200};  // between polls of the progress of other lanes

// The ranks that run cells one after another, next to other lanes.
struct Lane {
  Engine& engine;
  std::optional<LocalPlace> local;  // place of this rank among those of other lanes
  bool tells = false;               // its first rank prints a line from time to time
};

// Runs this rank's part of a cell; returns its exit code.
int train_cell(const StudyPlan& study, const StudyCell& cell, std::unique_ptr<Transport> part, const Lane& lane) {
  begin_run();
  Engine engine(with_network(std::move(part), load_config(cell.file, cell.sets).network));
  const auto load = [&](std::vector<std::string>& notes) { return load_config(cell.file, cell.sets, &notes); };
  return Attempt(engine, {.load_config = load,
                          .end_world = &MpiWorld::abort,
                          .local = lane.local,
                          .warmup_steps = study.warmup_steps})
      .run();
}

int run_search(const StudyPlan& search, const Lane& lane);

// All ranks of the lane; `steps` of the cell are known on the first. Returns the exit code of the cell.
int run_cell(const StudyPlan& study, const StudyCell& cell, const Lane& lane, Group& all, std::int64_t steps) {
  if (study.verb != "train" && study.verb != "bench allreduce")
    return static_cast<int>(all.max(lane.engine.rank() == 0 ? run_apart(study, cell) : static_cast<int>(kExitOk)));
  const std::vector<int> members = members_of(lane.engine.transport().hosts(), cell.ranks, cell.placement, cell.hosts);
  const auto place = std::find(members.begin(), members.end(), lane.engine.rank());
  const bool takes_part = place != members.end();
  std::unique_ptr<Transport> part =
      lane.engine.split_transport(takes_part ? 1 : 0, static_cast<int>(place - members.begin()));
  int code = kExitOk;
  if (takes_part && !cell.search.empty()) {
    Engine engine(std::move(part), kIdleRanks);
    code = run_search(search_of(study, cell), {.engine = engine, .local = lane.local, .tells = false});
    if (engine.rank() == 0 && code != kExitRequeue && code != kExitInterrupted)
      write_search_figures(search_of(study, cell), folder_of(study, cell));
  } else if (takes_part && study.verb != "train") {
    code = run_allreduce_cell(study, cell, std::move(part));
  } else if (takes_part) {
    std::optional<StudyHeartbeat> heartbeat;
    if (lane.tells && lane.engine.rank() == 0) heartbeat.emplace(cell, steps);
    code = train_cell(study, cell, std::move(part), lane);
  }
  return static_cast<int>(all.max(code));
}

int signalled() {
  const SignalWishes wishes = take_signal_wishes();
  return wishes.interrupt ? kExitInterrupted : wishes.requeue ? kExitRequeue : kExitOk;
}

// The next cell for the lane; none if nothing is left for it, or if a signal came while it waited for other lanes.
std::optional<StudyCell> next_cell(StudyLedger& ledger) {
  for (;;) {
    StudyLedger::Next next = ledger.next();
    if (!next.wait || signalled() != kExitOk) return std::move(next.cell);
    std::this_thread::sleep_for(kWait);
  }
}

// All ranks of the lane; `ledger` is set on its first. Returns 0, or the code of a stop by a signal.
int run_cells(const StudyPlan& study, const Lane& lane, StudyLedger* ledger) {
  Group all(lane.engine, 0);
  for (;;) {
    const std::optional<StudyCell> next = ledger ? next_cell(*ledger) : std::nullopt;
    const std::string told = all.of_first(next ? to_line(*next) : "");
    if (told.empty()) return static_cast<int>(all.max(signalled()));
    const double start_s = now_s();
    const int code = run_cell(study, cell_of_line(told), lane, all, ledger ? ledger->steps() : 0);
    if (ledger) ledger->end(code, now_s() - start_s);
    if (code == kExitRequeue || code == kExitInterrupted) return code;
    if (const int stop = static_cast<int>(all.max(signalled())); stop != kExitOk) return stop;
  }
}

// Runs a search that is a cell, trial by trial. Returns 0, or the code of a stop by a signal.
int run_search(const StudyPlan& search, const Lane& lane) {
  Group all(lane.engine, 0);
  const std::string name = all.of_first(fmt::format("{} {:.9f}", process_id_text(), now_s()));
  std::optional<StudyLedger> ledger;
  if (lane.engine.rank() == 0) ledger.emplace(search, name, lane.engine.transport().hosts());
  const int stop = run_cells(search, lane, ledger ? &*ledger : nullptr);
  if (ledger && stop == kExitOk) ledger->tidy();
  return stop;
}

// Number of lanes in a launch of this many ranks.
int lanes_of(const StudyPlan& study, int ranks) {
  const int fit = ranks / static_cast<int>(study.ranks.back());
  if (study.side_by_side > fit)
    throw ConfigError(fmt::format(
        "{}: study.side_by_side = {} of {} {} but this launch has {}", study.file, counted(study.side_by_side, "cell"),
        counted(study.ranks.back(), "rank"),
        study.side_by_side == 1 ? fmt::format("needs {}", counted(study.ranks.back(), "rank"))
                                : fmt::format("need {}", counted(study.side_by_side * study.ranks.back(), "rank")),
        ranks));
  if (study.side_by_side > 0) return static_cast<int>(study.side_by_side);
  return study.search ? static_cast<int>(std::min<std::int64_t>(fit, study.trials)) : 1;
}

}  // namespace

std::unique_ptr<StudyLedger> run_lanes(const StudyPlan& study, Engine& launch, int& stop, const Decided& decided) {
  Group all(launch, 0);
  int lanes = 1;
  all_or_none(all, [&] { lanes = lanes_of(study, launch.size()); });
  const std::vector<int>& hosts = launch.transport().hosts();
  const int ranks = static_cast<int>(study.ranks.back());
  // Process numbers are reused, in containers soon.
  const std::string name = all.of_first(fmt::format("{} {:.9f}", process_id_text(), now_s()));
  std::unique_ptr<StudyLedger> ledger;
  const auto run = [&](const Lane& lane, int beside) {
    if (lane.engine.rank() == 0)
      ledger = std::make_unique<StudyLedger>(study, name, lane.engine.transport().hosts(), beside, decided);
    if (launch.rank() == 0) ledger->begin();
    return run_cells(study, lane, ledger.get());
  };
  if (lanes == 1) {
    stop = run({.engine = launch, .local = {}, .tells = true}, 1);
    return ledger;
  }
  const std::vector<int> busy = members_of(hosts, lanes * ranks, study.placement);
  const auto at = std::find(busy.begin(), busy.end(), launch.rank()) - busy.begin();
  const bool takes_part = at < static_cast<std::ptrdiff_t>(busy.size());
  std::unique_ptr<Transport> part =
      launch.split_transport(takes_part ? static_cast<int>(at) / ranks : lanes, static_cast<int>(at) % ranks);
  int own_stop = kExitOk;
  if (takes_part) {
    Engine engine(std::move(part), kIdleRanks);
    const auto is_here = [&](int rank) {
      return hosts[static_cast<std::size_t>(rank)] == hosts[static_cast<std::size_t>(launch.rank())];
    };
    LocalPlace local{0, 0};
    for (const int rank : busy) {
      local.rank += is_here(rank) && rank < launch.rank() ? 1 : 0;
      local.ranks += is_here(rank) ? 1 : 0;
    }
    own_stop = run({.engine = engine, .local = local, .tells = launch.rank() == 0}, (local.ranks + ranks - 1) / ranks);
  }
  stop = static_cast<int>(all.max(own_stop));
  if (launch.rank() != 0) ledger.reset();
  return ledger;
}

}  // namespace echelon::cli
