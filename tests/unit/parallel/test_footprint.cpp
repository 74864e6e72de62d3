// What a run foretells of the memory of its strategy.
#include <catch2/catch.hpp>

#include "model/build.hpp"
#include "parallel/footprint.hpp"

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

}  // namespace echelon
