// SPDX-License-Identifier: Apache-2.0
#include "job/watchdog.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "base/process.hpp"
#include "base/stretch.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/local/local.hpp"
#include "job/launch_watch.hpp"

namespace echelon {
namespace {

// Waits until `done`, for at most 5 s.
template <class Done>
bool in_time(Done&& done) {
  for (const double end_s = now_s() + 5; now_s() < end_s; std::this_thread::sleep_for(std::chrono::milliseconds(5)))
    if (done()) return true;
  return false;
}

TEST_CASE("time in which the process stood still is no part of a wait", "[train]") {
  Standstill standstill(0.2);
  for (const double now_s : {10.0, 10.2, 10.9, 50.4, 50.6}) standstill.tick(now_s);  // stopped from 11.1 to 50.4
  CHECK(standstill.seconds_since(9) == Approx(39.3));
  CHECK(standstill.seconds_since(40.4) == Approx(10));  // a wait that began meanwhile is measured by the clock
  CHECK(standstill.seconds_since(50.5) == 0);
  standstill.tick(60.8);
  CHECK(standstill.seconds_since(9) == Approx(39.3 + 10));
}

TEST_CASE("a start or an end of MPI that hangs ends the process with 7", "[train]") {
  std::atomic<int> ended{0};
  enter_stretch("the barrier at the end");
  const LaunchWatch watch({.limit_s = 0.2, .look_every_s = 0.02, .end = [&](int code) { ended = code; }});
  SECTION("of one stretch") {
    REQUIRE(in_time([&] { return ended != 0; }));
    CHECK(ended == 7);
  }
  SECTION("not of several short ones, nor where a run is watched") {
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      enter_stretch("MPI_Finalize");
    }
    enter_stretch(nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    CHECK(ended == 0);
  }
  enter_stretch(nullptr);
}

TEST_CASE("a wait that goes on for too long ends the process and names the peer", "[train]") {
  auto world = make_local_world(2, {0, 1});
  Engine engine(std::move(world[0]));  // rank 1 never comes
  PhaseBoard phase;
  phase.at_step(17);
  phase.enter("exchange");
  std::atomic<int> ended{0};
  std::string reason;
  WatchdogOptions options;
  options.hang_timeout_s = 0.2;
  options.look_every_s = 0.02;
  options.record_exit = [&](int, const std::string& text) {
    reason = text;
    return true;
  };
  options.end = [&](int code) { ended = code; };
  options.others = {{1, process_id_text()}};  // still alive
  const Watchdog dog(engine, phase, options);

  SECTION("nothing is under way") {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    CHECK(ended == 0);
  }
  SECTION("an all-reduce that nobody joins") {
    std::vector<float> values(100);
    const double start_s = now_s();
    AllreduceRequest request;
    request.ranks = 2;
    request.elems = 100;
    Job job;
    job.plan = make_allreduce("ring", request);
    job.data = values.data();
    job.channel = 9;
    const Ticket ticket = engine.submit(std::move(job));
    REQUIRE(in_time([&] { return ended != 0; }));
    CHECK(now_s() - start_s > 0.19);
    CHECK(ended == 7);
    CHECK_THAT(reason, Catch::Contains("rank 0 on ") && Catch::Contains("for rank 1 on ") &&
                           Catch::Contains("channel 9") && Catch::Contains("at step 17") &&
                           Catch::Contains("in exchange"));
  }
  SECTION("a server that stands by while workers evaluate waits as long as it takes") {
    phase.enter(kStandBy);
    std::int64_t value = 0;
    const Ticket ticket =
        engine.submit({.plan = make_broadcast(0, 2, 1, 1), .data = &value, .dtype = DType::f64, .after = nullptr});
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    CHECK(ended == 0);
    phase.enter("serving");
    REQUIRE(in_time([&] { return ended != 0; }));
    CHECK(ended == 7);
  }
  SECTION("a wait for a slow rank is no hang while steps are heard of") {
    std::int64_t value = 0;
    const Ticket ticket =
        engine.submit({.plan = make_broadcast(0, 2, 1, 1), .data = &value, .dtype = DType::f64, .after = nullptr});
    for (int i = 0; i < 10; ++i) {
      phase.hear_of_step();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    CHECK(ended == 0);
    const double start_s = now_s();
    REQUIRE(in_time([&] { return ended != 0; }));
    CHECK(now_s() - start_s > 0.1);
    CHECK(ended == 7);
    CHECK_THAT(reason, Catch::Contains("for rank 1 on "));
  }
  SECTION("data that does not come") {
    phase.enter("data");
    REQUIRE(in_time([&] { return ended != 0; }));
    CHECK(ended == 7);
    CHECK_THAT(reason, Catch::Contains("for its data") && Catch::Contains("step 17"));
  }
}

TEST_CASE("a rank of this host whose process is gone ends the others, by name", "[train]") {
  auto world = make_local_world(2, {0, 0});
  Engine engine(std::move(world[0]));
  PhaseBoard phase;
  phase.at_step(17);
  phase.enter("exchange");
  const std::string own = process_id_text();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  std::atomic<int> ended{0};
  std::string reason;
  WatchdogOptions options;
  options.look_every_s = 0.02;
  options.others = {{1, std::to_string(child) + own.substr(own.find(' '))}};
  options.record_exit = [&](int, const std::string& text) {
    reason = text;
    return true;
  };
  options.end = [&](int code) { ended = code; };
  const Watchdog dog(engine, phase, options);
  REQUIRE(in_time([&] { return ended != 0; }));
  CHECK(ended == 7);
  CHECK_THAT(reason, Catch::Contains("rank 1 on ") && Catch::Contains("was lost") &&
                         Catch::Contains("PID " + std::to_string(child)) && Catch::Contains("at step 17, in exchange"));
}

}  // namespace
}  // namespace echelon
