// SPDX-License-Identifier: Apache-2.0
// Ranks on virtual time: plans give the right sums in the model's times, schedules repeat, and hanging ranks are named.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/allocations.hpp"
#include "base/error.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/disturbed.hpp"
#include "comm/virtual/plan_actor.hpp"
#include "comm/virtual/world.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

// Returns the virtual seconds that an all-reduce of n doubles takes; checks its sums.
double allreduce_s(const std::string& name, int k, std::int64_t n, const VirtualNetwork& network,
                   const Disturbance& disturbance = {}, std::int64_t segment = 0) {
  VirtualWorld world(k, network);
  std::vector<std::vector<double>> data;
  std::vector<double> sum(static_cast<std::size_t>(n));
  for (int r = 0; r < k; ++r) {
    std::vector<double> own;
    for (const std::int64_t value : test::random_integers(sum.size(), -1000, 1000, "rank" + std::to_string(r)))
      own.push_back(static_cast<double>(value));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
    data.push_back(std::move(own));
  }
  std::vector<std::unique_ptr<PlanActor>> actors;
  std::vector<VirtualActor*> all;
  for (int r = 0; r < k; ++r) {
    const AllreduceRequest request{.rank = r, .ranks = k, .elems = n, .segment_elems = segment, .hosts = network.hosts};
    Disturbance own = disturbance;
    actors.push_back(std::make_unique<PlanActor>(make_disturbed(world.transport(r), own), make_allreduce(name, request),
                                                 data[static_cast<std::size_t>(r)].data(), DType::f64, 3));
    all.push_back(actors.back().get());
  }
  world.run(all, 1e6);
  for (const std::vector<double>& own : data) REQUIRE(own == sum);
  return world.clock().now_s();
}

}  // namespace

TEST_CASE("every all-reduce on virtual time: right sums, whatever the order of events", "[comm][virtual]") {
  std::uint64_t seed = test::test_seed();
  for (const std::string& name : allreduce_names()) {
    if (name == "mpi" || name == "shared") continue;  // these use no messages
    for (int k = 1; k <= 9; ++k) {
      VirtualNetwork network{.between_hosts = {.jitter = 3}, .inside_host = {.latency_s = 1e-6, .bytes_per_s = 1e10}};
      network.seed = ++seed;
      network.eager_bytes = seed % 2 == 0 ? 64 : 1 << 20;
      for (int r = 0; r < k; ++r) network.hosts.push_back(r / 3);
      CAPTURE(name, k, seed);
      CHECK(allreduce_s(name, k, 100 + k, network, {.seed = seed, .delay_s = 20e-6}, 16) >= 0);
    }
  }
}

TEST_CASE("the ring's time is that of its formula: 2 (k-1)/k G / R and its latencies", "[comm][virtual]") {
  const VirtualNetwork network{.between_hosts = {.latency_s = 20e-6, .bytes_per_s = 1e8}};
  constexpr std::int64_t kElems = 1 << 18;
  const double bytes = static_cast<double>(kElems) * sizeof(double);
  for (const int k : {2, 4, 8}) {
    const double bound_s = 2.0 * (k - 1) / k * bytes / 1e8;
    const double time_s = allreduce_s("ring", k, kElems, network, {}, 1024);
    CAPTURE(k, bound_s, time_s);
    CHECK(time_s >= bound_s);
    CHECK(time_s < 1.1 * bound_s);
  }
  // A server's card takes in the bytes of all others, (k-1) G, and sends as many.
  CHECK(allreduce_s("naive", 4, kElems, network, {}, 0) >= 3 * bytes / 1e8);
}

TEST_CASE("a schedule repeats from its seed and differs with another", "[comm][virtual]") {
  VirtualNetwork network{.between_hosts = {.jitter = 1}};
  const auto time_s = [&](std::uint64_t seed) {
    network.seed = seed;
    return allreduce_s("ring", 5, 1000, network, {.seed = seed, .delay_s = 1e-5}, 64);
  };
  CHECK(time_s(1) == time_s(1));
  CHECK(time_s(1) != time_s(2));
}

TEST_CASE("ranks that wait for ever are named", "[comm][virtual]") {
  CHECK_THROWS_WITH(allreduce_s("ring", 4, 100, {}, {.drop = 1}), Catch::Contains("nothing is under way") &&
                                                                      Catch::Contains("rank 3") &&
                                                                      Catch::Contains("receives from rank 2"));
  CHECK_THROWS_WITH(allreduce_s("ring", 2, 100, {}, {.cut_at_s = 0, .cut_from = {0}}),
                    Catch::Contains("not done: rank"));
}

TEST_CASE("a rank that stops holds the others up for as long", "[comm][virtual]") {
  const double plain_s = allreduce_s("ring", 4, 1000, {}, {});
  const double stopped_s = allreduce_s("ring", 4, 1000, {}, {.stop_at_s = plain_s / 2, .stop_for_s = 3});
  CHECK(stopped_s > 3);
  CHECK(stopped_s < 3 + 2 * plain_s);
}

TEST_CASE("an event of a large world asks few ranks whether they are done", "[comm][virtual][large_k]") {
  struct Waiter final : VirtualActor {
    Waiter(const Clock& of, double until, int& counted) : clock(of), until_s(until), asked(counted) {}
    bool pass() override { return false; }
    bool done() const override { return ++asked, clock.now_s() >= until_s; }
    double wakes_at_s() const override {
      return clock.now_s() < until_s ? until_s : std::numeric_limits<double>::infinity();
    }
    const Clock& clock;
    double until_s;
    int& asked;
  };
  constexpr int kRanks = 1000;
  VirtualWorld world(kRanks, {});
  int asked = 0;
  std::vector<std::unique_ptr<Waiter>> waiters;
  std::vector<VirtualActor*> actors;
  for (int rank = 0; rank < kRanks; ++rank) {
    waiters.push_back(std::make_unique<Waiter>(world.clock(), 1e-3 * (rank + 1), asked));
    actors.push_back(waiters.back().get());
  }
  world.run(actors);
  CHECK(world.clock().now_s() == Approx(1e-3 * kRanks));
  CHECK(asked < 10 * kRanks);
}

TEST_CASE("an executor holds as much for 4,096 ranks as for 2", "[comm][large_k]") {
  const auto held = [](int ranks) {
    const auto plan = make_broadcast(0, ranks, 0, 1);
    double value = 0;
    const std::int64_t before = held_bytes;
    Executor executor(16);
    executor.start(plan, &value, DType::f64, 0);
    return held_bytes - before;
  };
  CHECK(held(2) > 0);
  CHECK(held(4096) == held(2));
}

}  // namespace echelon
