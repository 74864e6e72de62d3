// SPDX-License-Identifier: Apache-2.0
// Strategies without servers: their formulas against their machines and plans on virtual time, and plain draws.
#include <algorithm>
#include <catch2/catch.hpp>

#include "planner/pace.hpp"
#include "planner/virtual_strom.hpp"

using namespace echelon;

namespace {

struct Scene {
  Config config;
  Workload work{.model = "even", .buckets = {}};
  StepModel step;
  Network network{.inside = {2e-6, 5e9}, .between = {20e-6, 1.18e8}, .add_bytes_per_s = 1e10};

  Scene(const std::string& strategy, double compute_s, double jitter = 0) {
    config.exchange.strategy = strategy;
    step.forward_s = compute_s / 3, step.backward_s = 2 * compute_s / 3;
    step.variation = Variation::lognormal(jitter, 0);
    for (int b = 0; b < 4; ++b)
      work.buckets.push_back({.elems = 2'000'000, .ready = (b + 1) / 4.0, .needed = (3 - b) / 4.0});
    work.elems = 8'000'000;
  }
  template <class Call>
  double with(const Call& call, int ranks_a_host = 1) {
    PlanPricer pricer(network, ranks_a_host);
    return call(StrategySetting{.config = config, .work = work, .step = step, .pricer = pricer});
  }
};

}  // namespace

TEST_CASE("decentralised exchange: the machine takes as long as its formula", "[planner]") {
  for (const StromRounds rounds : {StromRounds::synchronous, StromRounds::asynchronous})
    for (const StromTopology topology : {StromTopology::all, StromTopology::ring})
      for (const double compute_s : {0.02, 0.5})
        for (const int k : {2, 4, 16}) {
          Scene scene("strom", compute_s);
          scene.config.exchange.strom.rounds = rounds, scene.config.exchange.strom.topology = topology;
          const double simulated = scene.with([&](const StrategySetting& s) { return simulated_strom_s(s, k); });
          const double closed = scene.with([&](const StrategySetting& s) { return strom_formula_s(s, k); });
          CAPTURE(rounds == StromRounds::asynchronous, topology == StromTopology::ring, compute_s, k);
          CHECK(closed == Approx(simulated).epsilon(0.01));
        }
}

TEST_CASE("gossip: plans of a round take as long as their formula", "[planner]") {
  for (const GossipTopology topology : {GossipTopology::ring, GossipTopology::exponential, GossipTopology::random})
    for (const int ranks_a_host : {1, 4})
      for (const int k : {2, 4, 8, 32}) {
        Scene scene("gossip", 0.1);
        scene.config.exchange.gossip.topology = topology;
        const double simulated =
            scene.with([&](const StrategySetting& s) { return simulated_mixing_s(s, k); }, ranks_a_host);
        const double closed =
            scene.with([&](const StrategySetting& s) { return mixing_formula_s(s, k); }, ranks_a_host);
        CAPTURE(static_cast<int>(topology), ranks_a_host, k);
        CHECK(closed == Approx(simulated).epsilon(0.02));
      }
}

// Plans on virtual time, the closed form with drawn groups, and that of many replicas give the same.
TEST_CASE("noloco: a round between hosts takes as long for any number of replicas", "[planner]") {
  for (const int group : {2, 3})
    for (const int k : {6, 60, 600, 6000}) {
      Scene scene("noloco", 0.1);
      scene.config.exchange.noloco.group = group;
      scene.config.exchange.noloco.consensus_every = 1'000'000'000;
      const double step_s = scene.with([&](const StrategySetting& s) { return strategy_step_s(s, k); });
      const double message_s = scene.work.bytes() / scene.network.between.bytes_per_s;
      CAPTURE(group, k);
      CHECK((step_s - 0.1) * 10 == Approx((group - 1) * message_s).epsilon(0.05));
    }
}

TEST_CASE("local steps: replicas that meet every H steps wait for the slowest of their sums", "[planner]") {
  constexpr int kSteps = 4000;
  for (const std::string strategy : {"averaging", "elastic"})
    for (const int period : {1, 10})
      for (const int k : {2, 8}) {
        Scene scene(strategy, 1.0, 0.2);
        scene.config.exchange.averaging.period = scene.config.exchange.elastic.period = period;
        std::vector<std::vector<double>> drawn;
        for (int r = 0; r < k; ++r) drawn.push_back(drawn_factors(scene.step.variation, k, r, kSteps));
        double sum_s = 0;
        for (int first = 0; first < kSteps; first += period) {
          double slowest = 0;
          for (const std::vector<double>& one : drawn) {
            double own = 0;
            for (int t = first; t < first + period; ++t) own += one[static_cast<std::size_t>(t)];
            slowest = std::max(slowest, own);
          }
          sum_s += slowest;
        }
        const double exchange_s = scene.with([&](const StrategySetting& s) { return whole_allreduce_s(s, k, 1); });
        const double predicted = scene.with([&](const StrategySetting& s) { return strategy_step_s(s, k); });
        CAPTURE(strategy, period, k);
        CHECK(predicted == Approx(sum_s / kSteps + exchange_s / period).epsilon(0.01));
      }
}
