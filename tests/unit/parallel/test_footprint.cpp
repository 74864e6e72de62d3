// What a run foretells of the memory of its strategy.
#include <catch2/catch.hpp>

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
  return footprint_of(config, graph, {.micro = {4}, .replicas = 4});
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
  // A worker has 3; four workers' messages, the weights: a part on each of 4, of 2, of 2 beside the workers.
  CHECK(arenas({}, host, 0, 0) == std::pair(3 + (4 + 1) / 4.0, 0.0));
  CHECK(arenas({}, device, 0, 0) == std::pair(3 + 4 / 4.0, (1 + 1) / 4.0));
  CHECK(arenas({}, device, 0, 2) == std::pair(3 + 4 / 2.0, (1 + 1) / 2.0));
  CHECK(arenas({}, device, 2, 0) == std::pair(3.0, (1 + 1) / 2.0));
  // A sum, momentum, four copies and mean squares, which all ranks have whole on the host too.
  AsynchronousKeys keys{.soft = 2, .states = AsyncStates::server};
  keys.delay_compensation = 0.1, keys.compensation_decay = 0.9;
  CHECK(arenas(keys, host, 0, 2) == std::pair(1 + 3 + (4 + 8) / 2.0, 0.0));
  CHECK(arenas(keys, device, 0, 2) == std::pair(1 + 3 + 4 / 2.0, 8 / 2.0));
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
