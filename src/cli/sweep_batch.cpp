// echelon sweep batch: one experiment at several batch sizes, one after another in one world, then the table.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/options.hpp"
#include "comm/engine.hpp"
#include "comm/mpi/world.hpp"
#include "config/batch_plan.hpp"
#include "config/parse.hpp"
#include "job/launch.hpp"
#include "job/run_folder.hpp"
#include "job/signals.hpp"
#include "report/batch_sweep.hpp"
#include "run/attempt.hpp"

namespace echelon::cli {
namespace {

Config config_at(const SweepBatchOptions& options, std::int64_t size) {
  std::vector<std::string> sets = options.sets;
  sets.push_back(fmt::format("batch.global={}", size));
  return load_config(options.config, sets);
}

void require_sizes(const SweepBatchOptions& options) {
  if (!std::is_sorted(options.sizes.begin(), options.sizes.end(), std::less_equal<>()) || options.sizes.front() < 1)
    throw ConfigError(
        fmt::format("--sizes {}: batch sizes must increase from 1 or more", fmt::join(options.sizes, ",")));
  if (!(options.target > 0 && options.target <= 1))
    throw ConfigError(fmt::format("--target {}: a test accuracy above 0 and up to 1", options.target));
  for (const std::int64_t size : options.sizes) {
    const Config config = config_at(options, size);
    check_combinations(config);
    if (config.data.test.empty()) throw ConfigError(fmt::format("{}: a sweep needs data.test", options.config));
  }
}

}  // namespace

int run_sweep_batch(const SweepBatchOptions& options) {
  prepare_process();
  require_sizes(options);
  MpiWorld world;
  const SignalWatch signals;
  std::vector<std::string> runs;
  for (const std::int64_t size : options.sizes) {
    begin_run();
    Engine engine(world.transport());
    const auto load = [&](std::vector<std::string>&) { return config_at(options, size); };
    Attempt attempt(engine, {.load_config = load, .end_world = &MpiWorld::abort});
    const int code = attempt.run();
    // A batch with which training diverges is a finding; all else ends the sweep.
    if (code == kExitNumeric) continue;
    if (code != kExitOk) return code;
    runs.push_back(run_path(config_at(options, size)));
  }
  if (world.rank() != 0) return kExitOk;
  const BatchSweep sweep = make_batch_sweep(runs, options.target);
  flush_log();
  fmt::print("\n{}", batch_sweep_text(sweep));
  if (!options.out.empty()) {
    write_file_whole(options.out, batch_sweep_markdown(sweep));
    fmt::print("written: {}\n", options.out);
  }
  return kExitOk;
}

}  // namespace echelon::cli
