// SPDX-License-Identifier: Apache-2.0
// echelon sweep batch: runs a study of one experiment at several batch sizes up to the goal, with one or more rules
// that scale the learning rate, and prints the table.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/nearest.hpp"
#include "cli/on_ranks.hpp"
#include "cli/options.hpp"
#include "cli/study_lanes.hpp"
#include "comm/group.hpp"
#include "comm/mpi/world.hpp"
#include "config/parse.hpp"
#include "config/traits/rules.hpp"
#include "job/agree.hpp"
#include "job/job_end.hpp"
#include "job/launch.hpp"
#include "job/signals.hpp"
#include "report/batch_sweep.hpp"

namespace echelon::cli {
namespace {

constexpr double kTarget = 0.9;

struct Sweep {
  StudyPlan study;
  std::vector<BatchSweepCell> cells;  // [cell of the study]
  void add(std::int64_t size, const std::string& rule, std::vector<std::string> sets) {
    cells.push_back({.batch = size, .rule = rule});
    sets.push_back(fmt::format("batch.global={}", size));
    study.variants.push_back({.name = fmt::format("batch {}{}{}", size, rule.empty() ? "" : ", ", rule),
                              .sets = std::move(sets),
                              .where = ""});
  }
};

void require_words(const SweepBatchOptions& options, const std::vector<std::int64_t>& sizes) {
  if (!std::is_sorted(sizes.begin(), sizes.end(), std::less_equal<>()) || sizes.front() < 1)
    throw ConfigError(fmt::format("--sizes {}: batch sizes must be at least 1 and increase", fmt::join(sizes, ",")));
  if (options.target < 0 || options.target > 1)
    throw ConfigError(fmt::format("--target {}: must be a test accuracy above 0 and at most 1", options.target));
  for (const std::string& scaling : options.scalings)
    if (find_traits(kScalings, scaling) == nullptr)
      throw ConfigError(unknown_name("--scaling", scaling, names_in(kScalings)));
}

// Returns the goal's keys if the options or the default set them.
std::vector<std::string> goal_sets(const SweepBatchOptions& options, const Config& base) {
  if (options.target == 0 && base.goal.metric != GoalMetric::none) return {};
  return {"goal.metric=test_accuracy", fmt::format("goal.target={}", options.target > 0 ? options.target : kTarget)};
}

// The rules scale the learning rate that the config has at its own batch.
Sweep sweep_of(const SweepBatchOptions& options, int ranks) {
  const Config base = load_config(options.config, options.sets);
  std::vector<std::int64_t> sizes = options.sizes;
  const std::int64_t tuned = base.batch.global;
  if (sizes.empty() && tuned == 0) throw ConfigError("sweep batch: batch.global = 0 is the whole set; name --sizes");
  if (sizes.empty()) sizes = {tuned, 2 * tuned, 4 * tuned};
  require_words(options, sizes);
  if (base.data.test.empty()) throw ConfigError(fmt::format("{}: a sweep needs data.test", options.config));
  if (!options.scalings.empty() && tuned == 0)
    throw ConfigError("--scaling takes the learning rate from batch.global, which is 0, the whole set");
  std::vector<std::string> sets = options.sets;
  for (const std::string& set : goal_sets(options, base)) sets.push_back(set);
  Sweep sweep{.study = plain_study(options.config, sets), .cells = {}};
  sweep.study.ranks = {ranks};
  sweep.study.mode = StudyMode::to_target;
  for (const std::int64_t size : sizes) {
    if (options.scalings.empty()) sweep.add(size, "", {});
    if (!options.scalings.empty() && size == tuned) sweep.add(size, "as tuned", {});
    if (size == tuned) continue;
    const std::int64_t from = base.optimiser.scaling == "none" ? tuned : base.optimiser.base_batch;
    for (const std::string& rule : options.scalings)
      sweep.add(size, rule,
                {"optimizer.scaling=" + rule, fmt::format("optimizer.base_batch={}", rule == "none" ? 0 : from)});
  }
  for (const StudyCell& cell : cells_of(sweep.study)) (void)load_config(options.config, cell.sets);
  return sweep;
}

// Called on rank 0 with one record per cell.
void print_sweep(const SweepBatchOptions& options, Sweep& sweep, const std::vector<CellRecord>& records) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    sweep.cells[i].state = name_of(records[i].state);
    if (records[i].state == CellState::finished) sweep.cells[i].attempt = records[i].attempt;
  }
  const BatchSweep table = make_batch_sweep(sweep.cells, sweep.study.goal);
  flush_log();
  fmt::print("\n{}", batch_sweep_text(table));
  if (options.out.empty()) return;
  write_file_whole(options.out, batch_sweep_markdown(table));
  fmt::print("written: {}\n", options.out);
}

// Called by all ranks.
int run_sweep(const SweepBatchOptions& options, Engine& launch) {
  Group all(launch, 0);
  Sweep sweep;
  all_or_none(all, [&] { sweep = sweep_of(options, launch.size()); });
  int stop = kExitOk;
  const std::unique_ptr<StudyLedger> ledger = run_lanes(sweep.study, launch, stop);
  int code = stop;
  if (ledger) {
    print_sweep(options, sweep, ledger->records());
    if (stop == kExitOk && ledger->any_failed()) code = kExitUnmet;
  }
  return static_cast<int>(all.max(code));
}

}  // namespace

int run_sweep_batch(const SweepBatchOptions& options) {
  prepare_process();
  take_early_signals();
  if (!under_launcher()) (void)sweep_of(options, 1);  // refuses errors before MPI is started
  find_job_end();
  MpiWorld world;
  const SignalWatch signals;
  set_log_level(LogLevel::warning);
  Engine launch(world.transport(), kIdleRanks);
  return ending_world(world, [&] { return run_sweep(options, launch); });
}

}  // namespace echelon::cli
