// SPDX-License-Identifier: Apache-2.0
// echelon train: joins the world and makes one attempt at the run. If the run continues without lost workers, it makes
// one more attempt for each loss.
#include <cstdio>
#include <cstdlib>

#include "base/check.hpp"
#include "base/log.hpp"
#include "cli/local_ranks.hpp"
#include "cli/options.hpp"
#include "comm/checked.hpp"
#include "comm/engine.hpp"
#include "comm/mpi/fabric_settings.hpp"
#include "comm/mpi/world.hpp"
#include "config/batch_plan.hpp"
#include "config/parse.hpp"
#include "fault/injector.hpp"
#include "job/job_end.hpp"
#include "job/launch.hpp"
#include "job/launch_watch.hpp"
#include "job/shaped_network.hpp"
#include "job/signals.hpp"
#include "run/attempt.hpp"
#include "run/survivors.hpp"

namespace echelon::cli {
namespace {

using LoadConfig = std::function<Config(std::vector<std::string>&)>;

// The config as this rank reads it; defaults if it cannot be read. The attempt reports errors in it and differences
// between ranks.
Config own_config(const TrainOptions& options) {
  try {
    return load_config(options.config, options.sets);
  } catch (const Error&) {
    return {};
  }
}

// Wraps a rank's transport with the network, the faults and the checks that the config asks for. Without any of them it
// returns the transport unchanged.
std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> transport, const Config& config, FaultInjector* faults) {
  transport = with_network(std::move(transport), config.network);
  if (faults) transport = faults->around(std::move(transport));
  return config.exchange.check_messages ? make_checked(std::move(transport)) : std::move(transport);
}

int train_on_threads(const TrainOptions& options, const LoadConfig& load) {
  const SignalWatch signals;
  const Config config = own_config(options);
  std::vector<std::unique_ptr<FaultInjector>> faults(static_cast<std::size_t>(options.local_ranks));
  const auto of = [&](int rank) -> std::unique_ptr<FaultInjector>& { return faults[static_cast<std::size_t>(rank)]; };
  return on_local_ranks(
      options.local_ranks,
      [&](Engine& engine) {
        return Attempt(engine, {.load_config = load,
                                .end_world = &end_local_ranks,
                                .threads = true,
                                .faults = of(engine.rank()).get()})
            .run();
      },
      [&](std::unique_ptr<Transport> transport) {
        of(transport->rank()) = make_fault_injector(config, transport->rank(), options.local_ranks);
        FaultInjector* const own = of(transport->rank()).get();
        return wrapped(std::move(transport), config, own);
      });
}

}  // namespace

int run_train(const TrainOptions& options) {
  prepare_process();
  take_early_signals();
  find_job_end();
  const auto load = [&](std::vector<std::string>& notes) { return load_config(options.config, options.sets, &notes); };
  if (options.local_ranks > 0) return train_on_threads(options, load);
  // A lone process is refused before MPI is started.
  const Config config = under_launcher() ? own_config(options) : load_config(options.config, options.sets);
  if (config.run.on_lost_worker == OnLostWorker::go_on) copy_through_shared_memory();
  const LaunchWatch watch({.limit_s = config.run.hang_timeout_s, .end = {}});
  MpiWorld world;
  const SignalWatch signals;
  const std::unique_ptr<FaultInjector> faults = make_fault_injector(config, world.rank(), world.size());
  const AttemptOptions attempt_options{.load_config = load,
                                       .end_world = &MpiWorld::abort,
                                       .faults = faults.get(),
                                       .launch_limit_s = config.run.hang_timeout_s};
  if (config.run.on_lost_worker == OnLostWorker::go_on) {
    const std::shared_ptr<Transport> launch = wrapped(world.transport(), config, faults.get());
    bool lost = false;
    const int code = run_with_survivors(launch, attempt_options, [&] { lost = true; });
    if (!lost) return code;
    flush_log();
    std::fflush(nullptr);
    std::_Exit(code);  // MPI_Finalize waits for lost ranks (Open MPI 4.1, about every second time)
  }
  Engine engine(wrapped(world.transport(), config, faults.get()));
  Attempt attempt(engine, attempt_options);
  return attempt.run();
}

}  // namespace echelon::cli
