// SPDX-License-Identifier: Apache-2.0
// Predictions where resources are shared: links under load, and cores that compute and messages both need.
#include <algorithm>
#include <catch2/catch.hpp>

#include "exchange/entry.hpp"
#include "tests/support/planner_scene.hpp"

using namespace echelon;
using Catch::Contains;
using test::Scene;

// An exchange of `n` bytes that is not hidden takes 1 / share of its time on a loaded network.
TEST_CASE("a network that is slower under load delays every strategy by its kind of traffic", "[planner]") {
  const auto exchange_s = [](const StrategyTraits& strategy, std::vector<LoadedShare> loaded) {
    Scene scene{std::string(strategy.name)};
    scene.config.exchange.overlap = Overlap::none;
    scene.network = read_network("gbit=0.01,latency_us=0");
    scene.network.loaded = std::move(loaded);
    scene.pricers = Pricers(scene.network, 1);
    return scene.row(8).step_s - scene.step.total_s();
  };
  for (const StrategyTraits& strategy : kStrategies) {
    INFO(strategy.name);
    const double free = exchange_s(strategy, {}), ring = exchange_s(strategy, {{.hosts = 4, .ring = 0.5}});
    const double shuffle = exchange_s(strategy, {{.hosts = 4, .shuffle = 0.5}});
    CHECK(exchange_s(strategy, {{.hosts = 9, .ring = 0.1, .shuffle = 0.1}}) == Approx(free));
    CHECK(std::max(ring, shuffle) == Approx(2 * free).epsilon(0.2));
    CHECK(std::min(ring, shuffle) == Approx(free));
    CHECK((ring > shuffle) == (strategy.all_reduces() && !strategy_entry(strategy.name).to_neighbours));
  }
}

TEST_CASE("a tree, which uses cards for two thirds of its time, loads links less than a ring", "[planner]") {
  const auto slower = [](const char* algorithm, double share) {
    Scene scene("synchronous");
    scene.config.exchange.algorithm = algorithm;
    scene.config.exchange.overlap = Overlap::none;
    scene.network = read_network("gbit=0.01,latency_us=0");
    scene.pricers = Pricers(scene.network, 1);
    const double free = scene.row(8).step_s - scene.step.total_s();
    scene.network.loaded = {{.hosts = 8, .ring = share, .shuffle = 0.1}};
    scene.pricers = Pricers(scene.network, 1);
    return (scene.row(8).step_s - scene.step.total_s()) / free;
  };
  CHECK(slower("ring", 0.8) == Approx(1.25).epsilon(1e-3));
  CHECK(slower("halving_doubling", 0.8) == Approx(10).epsilon(1e-3));
  CHECK(slower("tree", 0.8) == Approx(1).epsilon(1e-3));
  CHECK(slower("tree", 0.5) == Approx(2 * 2.0 / 3).epsilon(1e-3));
  CHECK(slower("server", 0.8) == Approx(10).epsilon(1e-3));
}

TEST_CASE("the share that overlap hides is found again from the step that it gives", "[planner]") {
  for (const char* strategy : {"synchronous", "server"}) {
    Scene scene(strategy);
    scene.config.exchange.bucket_mb = 0.25;  // a single bucket would leave nothing to hide
    scene.work = workload_of(scene.config, scene.graph);
    INFO(strategy);
    CHECK(overlap_share(scene.request(), 4, 0.9 * scene.row(4).step_s) == 1);
    for (const double share : {0.0, 0.3, 0.8}) {
      scene.step.overlap = share;
      CHECK(overlap_share(scene.request(), 4, scene.row(4).step_s) == Approx(share).margin(1e-9));
    }
    scene.config.exchange.overlap = Overlap::none;
    if (std::string(strategy) == "synchronous") CHECK(overlap_share(scene.request(), 4, 1.0) == 1);
  }
  Scene gossip("gossip");
  gossip.config.exchange.gossip.order = MixingOrder::mix_before;
  const double hides = gossip.row(4).step_s;
  gossip.step.overlap = 0;
  const double bare = gossip.row(4).step_s;
  gossip.config.exchange.gossip.order = MixingOrder::mix_after;
  CHECK(hides < bare);
  CHECK(bare == Approx(gossip.row(4).step_s));
  CHECK(described_step("samples_per_s=10,overlap=0.5", 8).overlap == 0.5);
  CHECK_THROWS_WITH(described_step("samples_per_s=10,overlap=1.5", 8), Contains("overlap") && Contains("0 to 1"));
}

TEST_CASE("a strategy that always codes takes as long for it as in a run of it", "[planner]") {
  Scene scene("strom");
  RunRecord run;
  run.config = std::make_shared<Config>(scene.config);
  run.codec = "none";
  CHECK(!measured_codec(run));  // nothing was coded
  run.coded = CodecFigures{.bytes_before = scene.work.bytes(), .bytes_after = 1, .seconds = 0.02};
  REQUIRE(measured_codec(run));
  CHECK(measured_codec(run)->encode_bytes_per_s == Approx(scene.work.bytes() / 0.02));
  CHECK(coding_of(scene.config.exchange) == "strom");
  const double usual_s = scene.row(2).step_s;
  scene.step.measured_codecs["strom"] = {.encode_bytes_per_s = scene.work.bytes() / 0.02};
  CHECK(scene.row(2).step_s - usual_s == Approx(0.02 - scene.work.bytes() / scene.step.codec.encode_bytes_per_s));
  Config ring = scene.config;
  ring.exchange.strategy = "synchronous";
  run.config = std::make_shared<Config>(ring);
  CHECK(!measured_codec(run));
  CHECK(coding_of(ring.exchange) == "none");
}
