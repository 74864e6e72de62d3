// SPDX-License-Identifier: Apache-2.0
// Predicted memory of a run's strategy.
#include <algorithm>
#include <catch2/catch.hpp>

#include "exchange/entry.hpp"
#include "model/build.hpp"
#include "parallel/footprint.hpp"
#include "parallel/split.hpp"

namespace echelon {
namespace {

Footprint footprint_with(AsynchronousKeys keys, int server_ranks, std::int64_t servers) {
  Config config;
  config.device.kind = "reference";
  config.exchange.strategy = "asynchronous";
  config.exchange.asynchronous = keys;
  config.exchange.server.ranks = server_ranks;
  config.exchange.servers = servers;
  config.optimiser.momentum = 0.9;
  LayerConfig flatten, dense;
  flatten.type = "flatten", dense.type = "dense", dense.units = 16;
  const Graph graph = build_layers({flatten, dense}, labelled(Shape{1, 4, 4}, 16));
  return footprint_of(config, graph, {.micro = {4}, .replicas = 4, .exchange = exchange_arenas});
}

}  // namespace

TEST_CASE("servers in device memory move what they have from the host to the device, but not the messages",
          "[parallel][asynchronous]") {
  const auto arenas = [](AsynchronousKeys keys, ServedMemory memory, int server_ranks, std::int64_t servers) {
    keys.memory = memory;
    const Footprint bytes = footprint_with(keys, server_ranks, servers);
    return std::pair{bytes.host / bytes.weights, bytes.strategy / bytes.weights};
  };
  using enum ServedMemory;
  // A worker has 3 arenas. Messages of four workers and the weights lie on 4 servers, on 2, or on 2 beside the workers.
  CHECK(arenas({}, host, 0, 0) == std::pair(3 + (4 + 1) / 4.0, 0.0));
  CHECK(arenas({}, device, 0, 0) == std::pair(3 + 4 / 4.0, (1 + 1) / 4.0));
  CHECK(arenas({}, device, 0, 2) == std::pair(3 + 4 / 2.0, (1 + 1) / 2.0));
  CHECK(arenas({}, device, 2, 0) == std::pair(3.0, (1 + 1) / 2.0));
  // A sum, momentum, four copies and mean squares come on top; on the host all ranks have the momentum whole too.
  AsynchronousKeys keys{.soft = 2, .states = AsyncStates::server};
  keys.delay_compensation = 0.1, keys.compensation_decay = 0.9;
  CHECK(arenas(keys, host, 0, 2) == std::pair(1 + 3 + (4 + 8) / 2.0, 0.0));
  CHECK(arenas(keys, device, 0, 2) == std::pair(1 + 3 + 4 / 2.0, 8 / 2.0));
}

TEST_CASE("residuals and messages of sums count as host memory, on a GPU the residual as its own", "[parallel]") {
  Config config;
  config.device.kind = "onednn";
  ExchangeConfig& exchange = config.exchange;
  ParameterSet set;
  set.add("weight", Shape{51'200}, {});
  const auto host = [&](const char* codec, const char* algorithm, int replicas) {
    exchange.codec = codec, exchange.algorithm = algorithm;
    return exchange_arenas(config, set, replicas).host;
  };
  const double int8 = (51'200 + 100 * 4) / 204'800.0, topk = (4 + 8 * 512) / 204'800.0;  // bytes over those of f32
  CHECK(host("none", "ring", 4) == 0);
  CHECK(host("none", "naive", 4) == 4);
  CHECK(host("none", "mpi", 4) == 1);
  CHECK(host("fp16", "ring", 1) == 1);
  CHECK(host("fp16", "ring", 4) == 1 + 0.5);
  CHECK(host("fp16", "naive", 4) == 1 + 4 * 0.5);
  CHECK(host("int8", "ring", 4) == 2 + 2 * int8);
  CHECK(host("topk", "ring", 4) == 1 + 4 * topk);
  CHECK(host("lossless", "ring", 4) == 1);
  CHECK(exchange_arenas(config, {}, 4).whole == 0);
  exchange.reduction = Reduction::adasum;
  CHECK(host("none", "ring", 3) == 1 + 2);
  exchange.reduction = Reduction::sum;
  config.device.kind = "cuda";
  CHECK(host("int8", "ring", 4) == 1 + 2 * int8);
  CHECK(exchange_arenas(config, {}, 4).device == 1);
  CHECK(host("int8", "ring", 1) == 2);
  CHECK(exchange_arenas(config, {}, 1).device == 0);
  CHECK((exchange_arenas(config, {}, 4).own == 1 && exchange_arenas(config, {}, 4).whole == 1));
  config.optimiser.momentum_before_coding = true;  // in the device's memory, instead of the optimiser's state
  CHECK((exchange_arenas(config, {}, 4).device == 2 && exchange_arenas(config, {}, 4).own == 2));
  exchange.codec = "lossless";
  CHECK((exchange_arenas(config, {}, 1).device == 1 && exchange_arenas(config, {}, 1).own == 1));
  CHECK(state_arenas(config) == 0);
}

TEST_CASE("messages of onebit take what the rows of the tensors make them take", "[parallel]") {
  Config config;
  config.device.kind = "onednn";
  config.exchange.codec = "onebit";
  ParameterSet set;
  set.add("long", Shape{10, 4096}, {});
  const auto long_rows = [](int messages) { return messages * 10.0 * (2 * (8 + 2048 / 8)) / (4 * 40960); };
  CHECK(exchange_arenas(config, set, 4).host == Approx(1 + long_rows(4)));
  CHECK(exchange_arenas(config, set, 1).host == 1);
  config.exchange.code_sums = true;  // two residuals; messages of the own parts and of the sums
  CHECK(exchange_arenas(config, set, 4).host == Approx(2 + long_rows(2)));
  config.exchange.code_sums = false;
  set.add("short", Shape{4551, 9}, {});  // 40959 values, 12 bytes a row
  set.add("bias", Shape{1}, {});
  const double message = (10.0 * (2 * (8 + 2048 / 8)) + 4551 * 12 + 4) / (4 * 2 * 40960);
  CHECK(exchange_arenas(config, set, 4).host == Approx(1 + 4 * message));
  config.exchange.strategy = "server";
  CHECK(exchange_arenas(config, set, 4).host == Approx(4 + 2 * message));
}

TEST_CASE("host memory of servers, gossip and Strom's exchange follows parts, neighbours and slots", "[parallel]") {
  Config config;
  ExchangeConfig& exchange = config.exchange;
  ParameterSet set;
  set.add("weight", Shape{51'200}, {});
  exchange.strategy = "server";
  CHECK(exchange_arenas(config, set, 4).host == 0);
  exchange.codec = "fp16";
  CHECK(exchange_arenas(config, set, 4).host == 4 + 0.5 * (1 + 4 / 4.0));
  exchange.server.ranks = 1;
  CHECK(exchange_arenas(config, set, 4).host == 4 + 0.5 * (1 + 4));
  exchange.codec = "topk";
  CHECK(exchange_arenas(config, set, 4).host == Approx(4 + (4 + 8 * 512) / 204'800.0 * (1 + 4) + 2));
  exchange = {};
  exchange.strategy = "backup";
  exchange.servers = 2;
  config.optimiser.momentum = 0.9;
  CHECK(exchange_arenas(config, {}, 4).device == 2 + 3 / 2.0);
  CHECK(exchange_arenas(config, {}, 4).host == 2 / 2.0);
  config.device.kind = "cuda";
  CHECK(exchange_arenas(config, {}, 4).device == 0);
  CHECK(exchange_arenas(config, {}, 4).host == 2 + 3 / 2.0 + 1 + 2 / 2.0);
  config.device.kind = "onednn";
  exchange = {};
  exchange.strategy = "gossip";
  for (const auto& [topology, neighbours] : {std::pair(GossipTopology::exponential, 1),
                                             {GossipTopology::ring, 2},
                                             {GossipTopology::random, 3},
                                             {GossipTopology::complete, 7}}) {
    exchange.gossip.topology = topology;
    CHECK(exchange_arenas(config, {}, 8).host == neighbours);
    CHECK(exchange_arenas(config, {}, 2).host == 1);
    CHECK(exchange_arenas(config, {}, 1).host == 0);
  }
  exchange.strategy = "noloco";
  for (const int group : {2, 5, 9}) {
    exchange.noloco.group = group;
    CHECK(exchange_arenas(config, {}, 8).host == std::min(group, 8) - 1);
    CHECK(exchange_arenas(config, {}, 1).host == 0);
    CHECK((exchange_arenas(config, {}, 8).device == 3 && exchange_arenas(config, {}, 8).own == 1 + 3));
  }
  exchange.strategy = "strom";
  CHECK(exchange_arenas(config, {}, 4).host == Approx(2 + 1 + 2 * 4 * 0.01));
  exchange.strom.warmup_steps = 1, exchange.strom.tau = 0.5;
  CHECK(exchange_arenas(config, {}, 4).host == 2 + 2 * 4);
  exchange.strom.rounds = StromRounds::asynchronous;
  CHECK(exchange_arenas(config, {}, 4).host == 2 + 8 * 4);
  CHECK(exchange_arenas(config, {}, 1).host == 2 + 1);
}

TEST_CASE("each rank that writes a part of a checkpoint holds a copy of that part alone", "[parallel]") {
  Config config;
  config.device.kind = "reference";
  config.optimiser.momentum = 0.9;
  config.parallel.pipeline = 2;
  LayerConfig flatten, first, second;
  flatten.type = "flatten", first.type = second.type = "dense", first.units = 29, second.units = 16;
  const Graph graph = build_layers({flatten, first, second}, labelled(Shape{1, 4, 4}, 16));
  const RankBatches batches{.micro = {4}, .accumulation = 2, .replicas = 2};
  const std::vector<double> costs(graph.nodes().size(), 1);
  double copies = 0;
  for (const int stage : {0, 1}) {
    MeshCoord coord{.stage = stage};
    const Part part = part_of(graph, config.parallel, coord, costs);
    const Footprint bytes = footprint_of(config, part, coord, batches);
    CHECK((bytes.checkpoint > 0 && bytes.checkpoint == bytes.saved()));
    copies += bytes.checkpoint;
    coord.spatial_shard = 1;
    CHECK(footprint_of(config, part, coord, batches).checkpoint == 0);
    coord = {.replica = 1, .stage = stage};
    CHECK(footprint_of(config, part, coord, batches).checkpoint == 0);
  }
  config.parallel.pipeline = 1;
  CHECK(copies == footprint_of(config, graph, batches).checkpoint);
  config.checkpoint.asynchronous = false;
  CHECK(footprint_of(config, graph, batches).checkpoint == 0);
}

}  // namespace echelon
