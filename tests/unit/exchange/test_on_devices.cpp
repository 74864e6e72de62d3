// SPDX-License-Identifier: Apache-2.0
// Sums between devices that never end, as the watchdog sees them.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "comm/local/local.hpp"
#include "exchange/strategy.hpp"
#include "job/watchdog.hpp"
#include "optim/optimiser.hpp"
#include "tests/support/discrete_device.hpp"
#include "tests/support/ranks.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr double kLimit_s = 0.5;  // longer than the pauses of a busy machine

// Runs one step of two ranks that sum on their devices; tells how the watchdog of rank 0 ends it, 0: it does not.
struct Seen {
  std::atomic<int> code = 0;
  std::string reason;
};

void one_step(const std::string& card, Seen& seen) {
  run_ranks(2, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    const bool watches = engine.rank() == 0;
    const auto device = make_discrete_device(card + (watches ? " 0" : " 1"));
    ParameterSet parameters;
    parameters.add("w", {300}, {});
    Arenas arenas(*device, parameters, DType::f32);
    Optimiser optimiser({}, arenas);
    ExchangeConfig config;
    config.algorithm = "nccl";
    const auto strategy =
        make_strategy(config, {.arenas = arenas, .optimiser = optimiser, .engine = engine, .first_channel = 6});
    PhaseBoard phase;
    phase.at_step(12);
    phase.enter("exchange");
    WatchdogOptions options;
    options.hang_timeout_s = kLimit_s;
    options.look_every_s = 0.02;
    options.record_exit = [&](int, const std::string& reason) {
      seen.reason = reason;
      return true;
    };
    options.end = [&](int code) { seen.code = code; };
    std::unique_ptr<Watchdog> dog;
    if (watches) dog = std::make_unique<Watchdog>(engine, phase, options);
    strategy->begin_step({.step = 0, .learning_rate = 0.1, .weight = 1, .local_weight = 1});
    strategy->wait_parameters({0, 300});
    strategy->gradient_ready({0, 300});
    (void)strategy->end_step();  // only enqueues
    for (const double end_s = now_s() + (card == "stuck" ? 5 : 3 * kLimit_s); now_s() < end_s && seen.code == 0;)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    dog.reset();
    if (card == "stuck") throw EnvironmentError("the end of the process");  // nothing waits for the sum any more
  });
}

TEST_CASE("a sum between devices that never ends is a hang, though nothing of the engine waits for it", "[nccl]") {
  Seen seen;
  CHECK_THROWS_WITH(one_step("stuck", seen), Catch::Contains("the end of the process"));
  CHECK(seen.code == kExitLostRank);
  CHECK_THAT(seen.reason, Catch::Contains("rank 0 on ") &&
                              Catch::Contains("for the library that sums between devices") &&
                              Catch::Contains("channel 6") && Catch::Contains("at step 12, in exchange"));
}

TEST_CASE("a sum between devices that has ended is no wait, however long ago it was asked for", "[nccl]") {
  Seen seen;
  one_step("well", seen);
  CHECK(seen.code == 0);
}

}  // namespace
}  // namespace echelon
