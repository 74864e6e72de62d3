// echelon train: joins the world and makes one attempt at the run, or, where it goes on without lost workers, as many
// as there are losses and one more.
#include <cstdio>
#include <cstdlib>

#include "base/check.hpp"
#include "base/log.hpp"
#include "cli/local_ranks.hpp"
#include "cli/options.hpp"
#include "comm/engine.hpp"
#include "comm/mpi/world.hpp"
#include "config/batch_plan.hpp"
#include "config/parse.hpp"
#include "job/launch.hpp"
#include "job/launch_watch.hpp"
#include "job/signals.hpp"
#include "run/attempt.hpp"
#include "run/survivors.hpp"

namespace echelon::cli {
namespace {

// Of the config that this rank reads; defaults where it cannot. What is wrong with it, or differs between ranks, is the
// attempt's to report.
RunConfig run_config(const TrainOptions& options) {
  try {
    return load_config(options.config, options.sets).run;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

int run_train(const TrainOptions& options) {
  hold_signals();
  prepare_process();
  take_early_signals();
  const auto load = [&](std::vector<std::string>& notes) { return load_config(options.config, options.sets, &notes); };
  if (options.local_ranks > 0) {
    const SignalWatch signals;
    return on_local_ranks(options.local_ranks, [&](Engine& engine) {
      return Attempt(engine, {.load_config = load, .end_world = &end_local_ranks}).run();
    });
  }
  // A lone process is refused before MPI is touched.
  const RunConfig run = under_launcher() ? run_config(options) : load_config(options.config, options.sets).run;
  const LaunchWatch watch({.limit_s = run.hang_timeout_s});
  MpiWorld world;
  const SignalWatch signals;
  const AttemptOptions attempt_options{.load_config = load, .end_world = &MpiWorld::abort};
  if (run.on_lost_worker == OnLostWorker::go_on) {
    const std::shared_ptr<Transport> launch = world.transport();
    bool lost = false;
    const int code = run_with_survivors(launch, attempt_options, [&] { lost = true; });
    if (!lost) return code;
    flush_log();
    std::fflush(nullptr);
    std::_Exit(code);  // MPI_Finalize waits for lost ranks (Open MPI 4.1, in about half of all tries)
  }
  Engine engine(world.transport());
  Attempt attempt(engine, attempt_options);
  return attempt.run();
}

}  // namespace echelon::cli
