// SPDX-License-Identifier: Apache-2.0
// Parameter servers: compares the formulas with the real machines on virtual time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "base/hash_rng.hpp"
#include "planner/virtual_served.hpp"

using namespace echelon;

namespace {

Workload even_work(std::int64_t elems, int buckets) {
  Workload work{.model = "even", .buckets = {}};
  for (int b = 0; b < buckets; ++b) {
    work.buckets.push_back({.elems = elems / buckets,
                            .ready = (b + 1.0) / buckets,
                            .needed = static_cast<double>(buckets - 1 - b) / buckets});
    work.elems += elems / buckets;
  }
  return work;
}

struct Scene {
  Config config;
  Workload work = even_work(8'000'000, 4);
  StepModel step;
  // 1 Gbit/s with hardly any latency, so that bytes and waits decide.
  Network network{.inside = {2e-6, 5e9}, .between = {2e-6, 1.18e8}, .add_bytes_per_s = 1e12};

  Scene(const std::string& strategy, double compute_s, double jitter = 0) {
    config.exchange.strategy = strategy;
    step.forward_s = compute_s / 3, step.backward_s = 2 * compute_s / 3;
    step.variation = Variation::lognormal(jitter, 0);
  }
  // Returns the formula's time over the simulated time.
  double ratio(int replicas) {
    PlanPricer pricer(network, 1);
    const StrategySetting setting{.config = config, .work = work, .step = step, .pricer = pricer};
    REQUIRE(can_simulate_served(setting, replicas));
    const double simulated = simulated_served_s(setting, replicas);
    const double closed = served_formula_s(setting, replicas);
    INFO(config.exchange.strategy << ", " << replicas << " replicas, " << step.total_s() << " s");
    CAPTURE(simulated, closed);
    CHECK(simulated >= step.total_s() * 0.99);
    return closed / simulated;
  }
};

}  // namespace

// Without priorities a card serves in order, and the formula is within 1 % for all draws. An urgent bucket waits for
// what has already left, one message or 2 ms of messages; the formula counts one message.
TEST_CASE("servers inside the workers: machines take as long as their formula", "[planner]") {
  for (const char* strategy : {"server", "asynchronous", "stale_synchronous"}) {
    const HashRng random(1, strategy);
    std::uint64_t next = 0;
    const auto drawn = [&](double least, double most) {
      return least * std::pow(most / least, random.uniform(next++));
    };
    std::vector<double> errors;
    for (int turn = 0; turn < 24; ++turn) {
      Scene scene(strategy, 1);
      scene.work = even_work(std::llround(drawn(1e5, 5e6)), static_cast<int>(drawn(1, 8)));
      scene.network.between = {drawn(2e-6, 1e-4), drawn(1e7, 3e8)};
      const double wire_s = scene.work.bytes() / scene.network.between.bytes_per_s, compute_s = wire_s * drawn(0.2, 8);
      scene.step.forward_s = compute_s / 3, scene.step.backward_s = 2 * compute_s / 3;
      const int replicas = static_cast<int>(drawn(2, 10));
      CAPTURE(strategy, replicas, scene.work.elems, scene.work.buckets.size(), compute_s, wire_s);
      scene.config.exchange.priority = false;
      CHECK(scene.ratio(replicas) == Approx(1).epsilon(0.01));
      scene.config.exchange.priority = true;
      errors.push_back(std::abs(scene.ratio(replicas) - 1));
      CHECK(errors.back() <= 0.12);
    }
    std::sort(errors.begin(), errors.end());
    CHECK(errors[errors.size() / 2] <= 0.005);
    CHECK(errors[errors.size() * 3 / 4] <= 0.02);
  }
}

TEST_CASE("backup workers: few machines stand for many", "[planner]") {
  for (const double compute_s : {0.05, 0.5, 2.0})
    for (const double jitter : {0.0, 0.2}) {
      const Scene scene("backup", compute_s, jitter);
      PlanPricer pricer(scene.network, 1);
      const StrategySetting setting{.config = scene.config, .work = scene.work, .step = scene.step, .pricer = pricer};
      const double all_s = simulated_served_s(setting, 16);
      CAPTURE(compute_s, jitter, served_formula_s(setting, 16));
      CHECK(all_s > compute_s);
      CHECK(many_backups_s(setting, 16) == Approx(all_s).epsilon(0.12));
    }
}

TEST_CASE("a step of backup workers does not wait for the one that is slow", "[planner]") {
  Scene scene("backup", 1.0, 0.5);
  scene.work = even_work(1000, 2);
  const auto seconds = [&](std::int64_t backups) {
    scene.config.exchange.backup.replicas = backups;
    PlanPricer pricer(scene.network, 1);
    return simulated_served_s({.config = scene.config, .work = scene.work, .step = scene.step, .pricer = pricer}, 8);
  };
  const double all_s = seconds(0), seven_s = seconds(1);
  CHECK(all_s == Approx(scene.step.variation.largest_of(8)).epsilon(0.15));
  CHECK(seven_s < 0.9 * all_s);
}

TEST_CASE("dedicated servers: few machines stand for many", "[planner]") {
  for (const char* strategy : {"server", "asynchronous"})
    for (const double compute_s : {0.05, 0.5, 2.0})
      for (const int replicas : {16}) {
        Scene scene(strategy, compute_s);
        scene.config.exchange.server.ranks = replicas / 8;
        PlanPricer pricer(scene.network, 1);
        const StrategySetting setting{.config = scene.config, .work = scene.work, .step = scene.step, .pricer = pricer};
        const double all_s = simulated_served_s(setting, replicas);
        INFO(strategy << ", " << replicas << " replicas, " << compute_s << " s");
        CHECK(few_dedicated_s(setting, replicas) == Approx(all_s).epsilon(0.12));
      }
}

TEST_CASE("a bound lies between waiting for all and for nobody", "[planner]") {
  const auto seconds = [](const char* strategy, std::int64_t bound) {
    Scene scene(strategy, 1.0, 0.2);
    scene.work = even_work(1000, 2);
    scene.config.exchange.stale_synchronous.bound = bound;
    PlanPricer pricer(scene.network, 1);
    return simulated_served_s({.config = scene.config, .work = scene.work, .step = scene.step, .pricer = pricer}, 8);
  };
  const double free_s = seconds("asynchronous", 0), locked_s = seconds("stale_synchronous", 0);
  const double bounded_s = seconds("stale_synchronous", 2);
  CHECK(free_s == Approx(1).epsilon(0.05));
  CHECK(locked_s == Approx(Variation::lognormal(0.2, 0).largest_of(8)).epsilon(0.06));
  CHECK(bounded_s > free_s);
  CHECK(bounded_s < locked_s);
}
