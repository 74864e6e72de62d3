// echelon train: joins the world and makes one attempt at the run.
#include "base/check.hpp"
#include "cli/local_ranks.hpp"
#include "cli/options.hpp"
#include "comm/engine.hpp"
#include "comm/mpi/world.hpp"
#include "config/batch_plan.hpp"
#include "config/parse.hpp"
#include "job/launch.hpp"
#include "job/signals.hpp"
#include "run/attempt.hpp"

namespace echelon::cli {

int run_train(const TrainOptions& options) {
  prepare_process();
  const auto load = [&](std::vector<std::string>& notes) { return load_config(options.config, options.sets, &notes); };
  if (options.local_ranks > 0) {
    const SignalWatch signals;
    return on_local_ranks(options.local_ranks, [&](Engine& engine) {
      return Attempt(engine, {.load_config = load, .end_world = &end_local_ranks}).run();
    });
  }
  if (!under_launcher()) (void)load_config(options.config, options.sets);  // refused before MPI is touched
  MpiWorld world;
  const SignalWatch signals;
  Engine engine(world.transport());
  Attempt attempt(engine, {.load_config = load, .end_world = &MpiWorld::abort});
  return attempt.run();
}

}  // namespace echelon::cli
