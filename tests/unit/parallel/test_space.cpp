// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "parallel/space.hpp"
#include "tests/support/image_models.hpp"

namespace echelon {
namespace {

using namespace test;
using Catch::Matchers::Contains;

TEST_CASE("rows are cut at multiples of the strides, windows reach as far over either side of a cut",
          "[parallel][space]") {
  CHECK(even_cuts(10, 4) == RowCuts{0, 2, 5, 7, 10});
  struct Row {
    RowWindow window;
    RowCuts output;
    std::int64_t rows;
    RowCuts cuts;
  };
  const Row rows[] = {
      {{3, 1, 1}, {0, 3, 8}, 8, {0, 3, 8}},    // 3x3
      {{3, 2, 1}, {0, 3, 8}, 15, {0, 6, 15}},  // with stride 2
      {{1, 2, 0}, {0, 3, 8}, 16, {0, 6, 16}},  // the shortcut beside it
      {{2, 2, 0}, {0, 3, 8}, 17, {0, 6, 17}},  // a pool that leaves one row over
      {{7, 2, 3}, {0, 3, 8}, 16, {0, 6, 16}},  // a stem
      {{5, 1, 0}, {0, 3, 8}, 12, {0, 5, 12}},  // no padding
      {{5, 1, 2}, {0, 1, 2}, 2, {0, 1, 2}},
  };
  for (const Row& row : rows) CHECK(cuts_below(row.window, row.output, row.rows) == row.cuts);
  CHECK(rows_seen({3, 1, 1}, {0, 3}) == RowSpan{-1, 4});
  CHECK(rows_seen({3, 2, 1}, {3, 8}) == RowSpan{5, 16});
  CHECK(rows_seen({5, 1, 0}, {3, 8}) == RowSpan{3, 12});
}

TEST_CASE("a model of images is cut alike on all paths, and whole behind them", "[parallel][space]") {
  const Graph graph = tall_resnet20();
  const SpacePlan plan(graph, 3);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const RowCuts& cuts = plan.cuts(node.outputs[0]);
    const std::string_view kind = node.layer->kind();
    const bool head = kind == "global_avg_pool" || kind == "flatten" || kind == "dense" || kind == "softmax_loss";
    INFO(node.name << " " << kind);
    CHECK(plan.on_rows(static_cast<int>(i)) != head);
    CHECK(cuts.empty() == head);
    if (head) continue;
    const std::int64_t rows = graph.values()[static_cast<std::size_t>(node.outputs[0])].shape[1], stride = rows / 4;
    CHECK(cuts == RowCuts{0, stride, 2 * stride, rows});
  }
}

TEST_CASE("spatial shards have the same cuts, and the first counts what all compute", "[parallel][space]") {
  const Graph graph = small_inception();
  const SpacePlan plan(graph, 3);
  const std::vector<int> stages(graph.nodes().size(), 0);
  std::vector<std::vector<Cut>> cuts(3);
  for (int spatial_shard = 0; spatial_shard < 3; ++spatial_shard) {
    const SpatialShardGraph own =
        spatial_shard_graph(graph, stages, plan, spatial_shard, cuts[static_cast<std::size_t>(spatial_shard)]);
    CHECK(own.stages.size() == own.graph.nodes().size());
    CHECK(own.graph.parameters().elems() == graph.parameters().elems());
    const std::vector<ArenaRange> elsewhere = counted_elsewhere(own.graph, plan.names());
    CHECK(elsewhere.size() == 2 + 4);  // weight and bias of the head, statistics of two norms
  }
  for (const std::vector<Cut>& all : cuts) {
    REQUIRE(all.size() == cuts[0].size());
    for (std::size_t c = 0; c < all.size(); ++c) {
      CHECK(all[c].value == cuts[0][c].value);
      CHECK(all[c].kind == cuts[0][c].kind);
      CHECK(all[c].shape == cuts[0][c].shape);
    }
  }
}

LayerConfig layer(const std::string& type, std::vector<std::int64_t> kernel = {},
                  std::vector<std::int64_t> padding = {}) {
  LayerConfig config;
  config.type = type;
  config.kernel = std::move(kernel);
  config.padding = std::move(padding);
  config.channels = type == "conv" ? 2 : 0;
  config.units = type == "dense" ? 5 : 0;
  config.where = "model.toml:7";
  return config;
}

TEST_CASE("rows that cannot be shared are refused with the layer and the numbers", "[parallel][space]") {
  const auto plan = [](const std::vector<LayerConfig>& layers, const Shape& image, int spatial_shards) {
    (void)SpacePlan(build_layers(layers, labelled(image, 5)), spatial_shards);
  };
  CHECK_THROWS_WITH(plan({layer("conv", {3}, {1}), layer("flatten"), layer("dense")}, {1, 3, 8}, 4),
                    Contains("model.toml:7") && Contains("parallel.space = 4") && Contains("its output has 3 rows") &&
                        Contains("use at most 3 ranks"));
  CHECK_THROWS_WITH(
      plan({layer("conv", {3}, {1}), layer("conv", {7}, {3}), layer("flatten"), layer("dense")}, {1, 6, 8}, 4),
      Contains("layer 'conv2'") && Contains("beyond those of its neighbours"));
  CHECK_THROWS_WITH(plan({layer("flatten"), layer("dense")}, {1, 9, 9}, 2),
                    Contains("no layer of this model has images"));
}

}  // namespace
}  // namespace echelon
