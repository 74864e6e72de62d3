// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "model/build.hpp"
#include "parallel/split.hpp"

namespace echelon {
namespace {

Config config_of(std::int64_t tensor, const char* device) {
  Config config;
  config.parallel.tensor = tensor;
  config.device.kind = device;
  return config;
}

std::int64_t settled(Config config) {
  resolve_recurrent_from(config);
  return config.parallel.recurrent_from;
}

TEST_CASE("from how many units on recurrent layers are split, where the config leaves it open") {
  CHECK(settled(config_of(2, "onednn")) == 64);
  CHECK(settled(config_of(2, "paced")) == 64);
  CHECK(settled(config_of(2, "cuda")) == 0);
  CHECK(settled(config_of(1, "onednn")) == -1);
  Config across = config_of(2, "onednn");
  across.parallel.allow_across_nodes = true;
  CHECK(settled(across) == 512);
  Config given = config_of(2, "cuda");
  given.parallel.recurrent_from = 5;
  CHECK(settled(given) == 5);
  Config chosen = config_of(1, "onednn");
  chosen.parallel.split = "auto";
  CHECK(settled(chosen) == 64);
}

TEST_CASE("layers split by their units are told by kind, those of few units as whole") {
  const SampleForm text{.shape = {7}, .vocabulary = 5, .label = {7}, .classes = 5};
  const auto layer = [](const char* type, std::int64_t units) {
    LayerConfig config;
    config.type = type;
    config.units = units;
    return config;
  };
  const Graph graph = build_layers(
      {layer("embedding", 3), layer("lstm", 6), layer("lstm", 4), layer("gru", 6), layer("dense", 5)}, text);
  ParallelConfig parallel;
  parallel.tensor = 2;
  parallel.recurrent_from = 5;
  const Part part = part_of(graph, parallel, {}, node_flops(graph, DType::f32));
  CHECK(part.shards == "embedding by rows, lstm by units, gru by units, dense by classes; whole: lstm");
}

}  // namespace
}  // namespace echelon
