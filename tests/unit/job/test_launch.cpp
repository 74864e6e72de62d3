// SPDX-License-Identifier: Apache-2.0
#include "job/launch.hpp"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/clock.hpp"
#include "comm/local/local.hpp"
#include "job/signals.hpp"
#include "run/banner.hpp"

namespace echelon {
namespace {

TEST_CASE("seats, threads and GPUs follow from the hosts", "[train]") {
  const auto world = make_local_world(5, {0, 1, 0, 0, 1});
  const int local_rank[] = {0, 0, 1, 2, 1};
  const int local_ranks[] = {3, 2, 3, 3, 2};
  for (std::size_t r = 0; r < 5; ++r) {
    const HostSlot slot = host_slot_of(*world[r]);
    CHECK(slot.hosts == 2);
    CHECK(slot.local_rank == local_rank[r]);
    CHECK(slot.local_ranks == local_ranks[r]);
  }
  HostSlot slot;
  slot.local_ranks = 10000;
  CHECK(threads_of({}, slot) == 1);
  DeviceConfig fixed;
  fixed.threads = 3;
  CHECK(threads_of(fixed, slot) == 3);

  std::string warning;
  slot = {.rank = 0, .ranks = 4, .hosts = 1, .local_rank = 3, .local_ranks = 4, .host = "a"};
  CHECK(gpu_index(slot, 2, &warning) == 1);
  CHECK(warning.empty());  // one rank per host is said explicitly
  slot.local_rank = 0;
  CHECK(gpu_index(slot, 2, &warning) == 0);
  CHECK_THAT(warning, Catch::Contains("4 ranks share 2 GPUs"));
  gpu_index(slot, 8, &warning);
  CHECK_THAT(warning, Catch::Contains("4 of 8 GPUs on a stay idle"));
  CHECK(gpu_index(slot, 0) == 0);
}

TEST_CASE("a run begins with its process, or where it is told to; the command is known", "[train]") {
  const double age_s = since_run_start_s();
  CHECK(age_s >= 0);
  CHECK(age_s < 3600);
  ::usleep(30'000);
  CHECK(since_run_start_s() > age_s);
  begin_run();
  CHECK(since_run_start_s() < 0.02);
  CHECK_THAT(command_line(), Catch::Contains("unit"));
  CHECK(now_utc_text().size() == 20);
}

TEST_CASE("HUP asks for one checkpoint, and no compute thread runs its handler", "[train]") {
  const SignalWatch watch;
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP}) CHECK(sigismember(&blocked, signal) == 1);
  CHECK(!take_signal_wishes().checkpoint);
  ::kill(::getpid(), SIGHUP);
  bool asked = false;
  for (const double end_s = now_s() + 5; !asked && now_s() < end_s;) asked = take_signal_wishes().checkpoint;
  CHECK(asked);
  CHECK(!take_signal_wishes().checkpoint);
}

TEST_CASE("equal values of consecutive ranks are printed once", "[train]") {
  CHECK(by_rank_text({"a"}) == "a");
  CHECK(by_rank_text({"a", "a", "b"}) == "0-1: a; 2: b");
}

}  // namespace
}  // namespace echelon
