// SPDX-License-Identifier: Apache-2.0
// echelon scale: runs the cells of a study on the ranks of one launch.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/on_ranks.hpp"
#include "cli/options.hpp"
#include "cli/set_up_limit.hpp"
#include "cli/study_claim.hpp"
#include "cli/study_lanes.hpp"
#include "cli/study_network.hpp"
#include "cli/study_pages.hpp"
#include "cli/study_record.hpp"
#include "comm/engine.hpp"
#include "comm/group.hpp"
#include "comm/mpi/world.hpp"
#include "config/parse.hpp"
#include "job/agree.hpp"
#include "job/job_end.hpp"
#include "job/launch.hpp"
#include "job/signals.hpp"
#include "study/study.hpp"

namespace echelon::cli {
namespace {

constexpr double kSetUp_s = 20;  // the same as in `bench network`

StudyPlan study_of(const ScaleOptions& options) {
  StudyPlan study = load_study(options.study, options.sets);
  for (const std::int64_t k : options.ranks)
    if (std::find(study.ranks.begin(), study.ranks.end(), k) == study.ranks.end())
      throw ConfigError(
          fmt::format("--ranks {}: is not a size of the study, whose ranks are {}", k, fmt::join(study.ranks, ", ")));
  if (!options.ranks.empty()) study.ranks = options.ranks;
  std::sort(study.ranks.begin(), study.ranks.end());
  return study;
}

StudyPlan study_for(const ScaleOptions& options, int ranks) {
  StudyPlan study = study_of(options);
  if (study.ranks.back() > ranks)
    throw ConfigError(
        fmt::format("{}: the study needs up to {}, but this launch has {}; start it with mpirun -n {} (or srun), or "
                    "name sizes that fit: --ranks 1,2",
                    study.file, counted(study.ranks.back(), "rank"), ranks, study.ranks.back()));
  return study;
}

bool asks_for_network(const ScaleOptions& options) {
  try {
    return options.network || study_of(options).network;
  } catch (const Error&) {  // reported once all ranks have met
    return false;
  }
}

// All ranks. `limit`: guards the steps before the network is measured.
int run_study(const ScaleOptions& options, Engine& launch, std::optional<SetUpLimit>& limit) {
  Group all(launch, 0);
  StudyPlan study;
  all_or_none(all, [&] { study = study_for(options, launch.size()); });
  if (study.network || options.network) {
    const std::unique_ptr<Transport> transport = launch.split_transport(0, launch.rank());
    limit.reset();
    if (!check_network(study, launch, *transport)) return kExitUnmet;
  }
  all_or_none(all, [&] {
    if (launch.rank() == 0) register_claim(study);
  });
  int stop = kExitOk;
  const std::unique_ptr<StudyLedger> ledger = run_lanes(study, launch, stop, is_decided);
  int code = stop;
  if (ledger) {
    ledger->refresh();
    if (ledger->left() == 0) ledger->tidy();
    if (!study.search) std::fputs("\n", stdout);
    const bool met = study.search ? print_search(study, *ledger->search(), ledger->records())
                                  : print_study(load_study(options.study, options.sets));  // with sizes of other jobs
    if (const auto left = static_cast<std::int64_t>(ledger->left()); left > 0)
      fmt::print("{} left: {}\n", counted(left, study.search ? "trial" : "cell"),
                 stop != kExitOk          ? "run the same command again to continue"
                 : study.budget_hours > 0 ? "raise study.budget_hours to run them"
                                          : "another launch is running them");
    if (stop == kExitOk && (ledger->any_failed() || (ledger->left() == 0 && !met))) code = kExitUnmet;
  }
  return static_cast<int>(all.max(code));
}

}  // namespace

int run_scale(const ScaleOptions& options) {
  if (options.list || options.report || options.slurm) {
    release_signals();
    const StudyPlan study = study_of(options);
    if (options.list) print_cells(study);
    if (options.slurm) write_jobs(study, options.jobs, options.submit);
    return !options.report || print_study(study) ? kExitOk : kExitUnmet;
  }
  prepare_process();
  take_early_signals();
  if (!under_launcher()) (void)study_for(options, 1);  // refuses errors before MPI is started
  find_job_end();
  std::optional<SetUpLimit> limit;  // a blocked link may already prevent the ranks from meeting
  MpiWorld world([&](int rank) {
    if (asks_for_network(options)) limit.emplace(rank, kSetUp_s);
  });
  const SignalWatch signals;
  set_log_level(LogLevel::warning);
  Engine launch(world.transport(), kIdleRanks);
  return ending_world(world, [&] { return run_study(options, launch, limit); });
}

}  // namespace echelon::cli
