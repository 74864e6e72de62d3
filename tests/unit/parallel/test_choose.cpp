// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "exchange/entry.hpp"
#include "model/build.hpp"
#include "parallel/choose.hpp"
#include "parallel/footprint.hpp"
#include "parallel/measured_costs.hpp"
#include "parallel/pipeline.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;
using Catch::Matchers::Contains;

Config config_of(std::int64_t batch, std::int64_t accumulation = 1) {
  Config config;
  config.model.zoo = "cnn_32_64";
  config.data.train = "data";
  config.batch.global = batch;
  config.batch.accumulation = accumulation;
  config.train.epochs = 1;
  config.device.kind = "onednn";
  config.parallel.split = "auto";
  return config;
}

// Two wide dense layers, whose memory is nearly all weights.
Graph wide_graph() {
  std::vector<LayerConfig> layers(3);
  layers[0].type = "flatten";
  layers[1].type = "dense", layers[1].units = 1024;
  layers[2].type = "dense", layers[2].units = 10;
  return build_layers(layers, labelled(Shape{1, 16, 16}, 10));
}

SplitCosts costs_of(const Graph& graph, double flops_per_s, const Link& link) {
  SplitCosts costs{.node_s = node_flops(graph, DType::f32), .network = {link, link}};
  for (double& cost : costs.node_s) cost /= flops_per_s;
  return costs;
}

RankHosts one_host(int ranks) { return {std::vector<int>(static_cast<std::size_t>(ranks), 0), {"here"}}; }

constexpr Link kFast{.latency_s = 1e-7, .bytes_per_s = 1e12}, kSlow{.latency_s = 1e-5, .bytes_per_s = 1e8};

TEST_CASE("auto: replicas where links cost nothing, the split of least bytes where they are slow", "[parallel]") {
  const Graph graph = wide_graph();
  const SplitChoice fast =
      choose_split(config_of(64), graph, one_host(4), {1000, 0}, costs_of(graph, 1e8, kFast), exchange_arenas);
  CHECK(fast.parallel.split == "given");
  CHECK(fast.parallel.pipeline * fast.parallel.tensor * fast.parallel.space == 1);
  CHECK_THAT(fast.report, Contains("auto: data 4 is the fastest of the splits (no memory limit is set)"));
  // The weights take 1 MiB; a step has 64 samples of 1,034 units.
  const SplitChoice slow =
      choose_split(config_of(64), graph, one_host(4), {1000, 0}, costs_of(graph, 1e12, kSlow), exchange_arenas);
  CHECK(slow.parallel.tensor == 4);
  for (const SplitCandidate& candidate : slow.candidates)
    if (candidate.refused.empty()) CHECK(candidate.samples_per_s <= 1.03 * slow.candidates.front().samples_per_s);
}

LayerConfig layer(const std::string& type, std::int64_t units = 0, std::int64_t channels = 0) {
  LayerConfig config;
  config.type = type;
  config.units = units;
  config.channels = channels;
  if (channels > 0) config.kernel = {3}, config.padding = {1};
  return config;
}

TEST_CASE("auto: four models over four ranks, each with the split that its bytes and FLOPs ask for", "[parallel]") {
  // With 3 kB of weights and 64 x 64 images, gradients cost next to nothing.
  const Graph images = build_layers({layer("conv", 0, 8), layer("relu"), layer("conv", 0, 8), layer("relu"),
                                     layer("global_avg_pool"), layer("flatten"), layer("dense", 10)},
                                    labelled(Shape{1, 64, 64}, 10));
  // 4 MiB of weights lie in four layers, which pass on 2 kB per sample.
  const Graph deep = build_layers({layer("dense", 512), layer("relu"), layer("dense", 512), layer("relu"),
                                   layer("dense", 512), layer("relu"), layer("dense", 512)},
                                  labelled(Shape{512}, 512));
  struct Row {
    const char* what;
    const Graph& graph;
    std::int64_t batch, accumulation;
    double flops_per_s;
    Link link;
    std::int64_t data, pipeline, tensor, space;
  };
  const Graph wide = wide_graph();
  for (const Row& row : {
           Row{"few weights: replicas", images, 64, 1, 1e10, {1e-5, 1e8}, 4, 1, 1, 1},
           Row{"one image: its rows, of which halos alone travel", images, 1, 1, 1e9, {1e-6, 1e8}, 1, 1, 1, 4},
           Row{"deep, many weights, messages of some cost: stages", deep, 64, 16, 1e10, {1e-4, 1e8}, 1, 4, 1, 1},
           Row{"wide, many weights: units of layers", wide, 64, 1, 1e12, kSlow, 1, 1, 4, 1},
       }) {
    const SplitChoice choice = choose_split(config_of(row.batch, row.accumulation), row.graph, one_host(4), {1000, 0},
                                            costs_of(row.graph, row.flops_per_s, row.link), exchange_arenas);
    INFO(row.what << "\n" << choice.report);
    CHECK(4 / (choice.parallel.pipeline * choice.parallel.tensor * choice.parallel.space) == row.data);
    CHECK(choice.parallel.pipeline == row.pipeline);
    CHECK(choice.parallel.tensor == row.tensor);
    CHECK(choice.parallel.space == row.space);
  }
}

TEST_CASE("auto: what does not fit a rank is split though that is slower, and nothing fits is said", "[parallel]") {
  const Graph graph = wide_graph();
  const SplitCosts costs = costs_of(graph, 1e8, kFast);
  Config config = config_of(64);
  const double whole = footprint_of(config_of(32), graph, {.micro = {32}}).total();  // one of two replicas
  config.device.memory_limit_mb = 0.75 * whole / (1 << 20);
  const SplitChoice choice = choose_split(config, graph, one_host(2), {1000, 0}, costs, exchange_arenas);
  CHECK(choice.parallel.tensor == 2);
  CHECK_THAT(choice.report, Contains("too large") && Contains("of the splits that need at most"));
  for (const SplitCandidate& candidate : choice.candidates)
    if (candidate.parallel.tensor == 2) CHECK(candidate.memory <= 0.75 * whole);

  config.device.memory_limit_mb = 0.25 * whole / (1 << 20);
  CHECK_THROWS_AS(choose_split(config, graph, one_host(2), {1000, 0}, costs, exchange_arenas), MemoryError);
  CHECK_THROWS_WITH(choose_split(config, graph, one_host(2), {1000, 0}, costs, exchange_arenas),
                    Contains("the nearest, data 1 x tensor 2, needs"));
}

TEST_CASE("auto: without a limit the card's memory is one, and what cannot even be counted is too large",
          "[parallel]") {
  const Graph graph = wide_graph();
  SplitCosts costs = costs_of(graph, 1e8, kFast);
  Config config = config_of(64);
  const double whole = footprint_of(config_of(32), graph, {.micro = {32}}).total();
  costs.card_bytes = 0.75 * whole;
  const SplitChoice choice = choose_split(config, graph, one_host(2), {1000, 0}, costs, exchange_arenas);
  CHECK(choice.parallel.tensor == 2);
  CHECK_THAT(choice.report, Contains("too large") && Contains("of the splits that need at most"));
  costs.card_bytes = 0.25 * whole;
  CHECK_THROWS_WITH(choose_split(config, graph, one_host(2), {1000, 0}, costs, exchange_arenas),
                    Contains("of a card") && Contains("the nearest, "));

  config = config_of(std::int64_t{1} << 40);  // activations alone take 4 PiB
  config.device.kind = "reference";
  costs.card_bytes = 0;
  CHECK_THROWS_AS(choose_split(config, graph, one_host(2), {std::int64_t{1} << 41, 0}, costs, exchange_arenas),
                  MemoryError);
  CHECK_THROWS_WITH(choose_split(config, graph, one_host(2), {std::int64_t{1} << 41, 0}, costs, exchange_arenas),
                    Contains("no split needs less than the memory that can be addressed"));
}

TEST_CASE("auto: groups lie on one host, and what config or batch forbid is left out with the reason", "[parallel]") {
  const Graph graph = wide_graph();
  const SplitCosts costs = costs_of(graph, 1e12, kSlow);
  const RankHosts two{{0, 0, 1, 1}, {"a", "b"}};
  for (const SplitCandidate& candidate :
       choose_split(config_of(64), graph, two, {1000, 0}, costs, exchange_arenas).candidates)
    CHECK(candidate.parallel.pipeline * candidate.parallel.tensor * candidate.parallel.space <= 2);
  Config across = config_of(64);
  across.parallel.allow_across_nodes = true;
  const SplitChoice over = choose_split(across, graph, two, {1000, 0}, costs, exchange_arenas);
  CHECK(over.parallel.tensor == 4);
  CHECK(over.parallel.allow_across_nodes);
  // 6 samples divide over 1, 2, 3 or 6 replicas.
  const SplitChoice odd = choose_split(config_of(6), graph, one_host(4), {1000, 0}, costs, exchange_arenas);
  CHECK_THAT(odd.report, Contains("data 4 is not possible: batch.global = 6") &&
                             Contains("data 2 x space 2 is not possible: parallel.space = 2 splits"));
}

TEST_CASE("auto: time of a pipeline is the first micro-batch's way and then the slowest stage's turns", "[parallel]") {
  const Graph graph = small_cnn();
  Config config = config_of(32, 4);
  config.parallel.split = "given";
  config.parallel.pipeline = 2;
  const SplitCosts costs = costs_of(graph, 1e9, {.latency_s = 0, .bytes_per_s = 1e18});
  std::vector<Part> parts;
  double all = 0, slowest = 0;
  for (int stage = 0; stage < 2; ++stage) {
    const Part& part =
        parts.emplace_back(part_of(graph, config.parallel, {.replica = 0, .stage = stage, .shard = 0}, costs.node_s));
    double stage_s = 0;
    for (std::size_t i = 0; i < part.stages.size(); ++i)
      if (part.stages[i] == stage) stage_s += 8 * costs.node_s[i];
    all += stage_s;
    slowest = std::max(slowest, stage_s);
  }
  const Mesh mesh(config.parallel, {0, 0}, {"here"});
  const SplitPrice price = price_split(config, graph, parts, mesh, {0, 0}, 8, costs);
  const double update = price.compute_s - 4 * slowest;
  CHECK(update > 0);
  CHECK(update < 1e-3);
  CHECK(price.step_s() - update == Approx(3 * slowest + all));
  CHECK(price.exchange_s == 0);
}

TEST_CASE("auto: the ranks of a host share its card in the exchange between hosts", "[parallel]") {
  const Graph graph = wide_graph();
  Config config = config_of(64);
  config.parallel.split = "given";
  config.parallel.tensor = 2;
  config.exchange.overlap = Overlap::none;
  SplitCosts costs = costs_of(graph, 1e9, kFast);
  costs.network.between = {.latency_s = 1e-4, .bytes_per_s = 1e8};
  const auto exchange_s = [&](const std::vector<int>& hosts, const std::vector<std::string>& names) {
    const Mesh mesh(config.parallel, hosts, names);
    const std::vector<Part> parts = {part_of(graph, config.parallel, mesh.coord(0), costs.node_s)};
    return price_split(config, graph, parts, mesh, hosts, 32, costs).exchange_s;
  };
  const Part half = part_of(graph, config.parallel, {}, costs.node_s);
  const double bytes = static_cast<double>(half.graph.parameters().elems()) * sizeof(float);
  // In a ring of two holders each sends half of its part twice; both shards of a host share the link.
  CHECK(exchange_s({0, 0, 1, 1}, {"a", "b"}) == Approx(2 * 1e-4 + bytes * 2 / 1e8));
  CHECK(exchange_s({0, 0, 0, 0}, {"a"}) == Approx(2 * kFast.latency_s + bytes / kFast.bytes_per_s));
}

TEST_CASE("layers are measured piece by piece, by as many ranks as there are", "[parallel]") {
  const Graph graph = small_cnn();
  DeviceOptions options;
  options.paced_gflops = 0.5;  // ops sleep in proportion to their FLOPs
  options.paced_gb_per_s = 1e6;
  const auto device = open_device("paced", options);
  const std::vector<double> flops = node_flops(graph, DType::f32);
  std::vector<double> together(flops.size());
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<double> mine = measure_costs(graph, *device, DType::f32, 4, rank, 3);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (mine[i] > 0) CHECK(together[i] == 0);  // only one rank measured it
      together[i] += mine[i];
    }
  }
  for (std::size_t i = 0; i < flops.size(); ++i)
    if (flops[i] > 2e5) CHECK(together[i] == Approx(flops[i] / 0.5e9).epsilon(0.5));
}

TEST_CASE("layers of sequences of different lengths are measured with whole ones", "[parallel]") {
  LayerConfig pool = layer("sequence_pool");
  pool.mode = "last";
  const Graph graph = build_layers({layer("embedding", 6), layer("lstm", 6), pool, layer("dense", 3)},
                                   {.shape = {8}, .vocabulary = 7, .classes = 3, .lengths = true});
  const auto device = open_device("onednn", {});
  const std::vector<double> costs = measure_costs(graph, *device, DType::f32, 4, 0, 1);
  CHECK(*std::max_element(costs.begin(), costs.end()) > 0);
}

}  // namespace
}  // namespace echelon
