// SPDX-License-Identifier: Apache-2.0
// The order of a spatial shard's ops: which rows are computed while halos travel.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "device/arenas.hpp"
#include "device/device.hpp"
#include "model/fuse.hpp"
#include "model/lowered.hpp"
#include "parallel/space.hpp"
#include "tests/support/discrete_device.hpp"
#include "tests/support/image_models.hpp"

namespace echelon {
namespace {

using namespace test;

constexpr int kSpatialShards = 3;

bool is_window(OpKind kind, bool backward) {
  if (backward) return kind == OpKind::conv_backward_data || kind == OpKind::pool_backward;
  return kind == OpKind::conv_forward || kind == OpKind::pool_forward;
}

std::int64_t rows_of(const Dims& dims) {
  if (const auto* pool = std::get_if<PoolDims>(&dims)) return pool->out().h;
  return std::get<ConvDims>(dims).P();
}

// Events of the node "window" in one direction: "s" sends, "r" receives, a number computes that many rows of its output
// or of their gradients.
struct Order {
  std::vector<std::string> events;
  std::int64_t rows = 0;  // rows of the output
  bool relu = false;      // the window is a max pool with a relu inside
};

Order order_of(const Graph& graph, int spatial_shard, bool backward, Device& device) {
  const SpacePlan plan(graph, kSpatialShards);
  std::vector<Cut> cuts;
  const Graph part =
      fused(spatial_shard_graph(graph, std::vector<int>(graph.nodes().size(), 0), plan, spatial_shard, cuts).graph);
  const Lowered lowered = lower(part, device, DType::f64, {.batch = 2});
  Order order;
  for (const LoweredOp& op : lowered.ops) {
    const Node& node = part.nodes()[static_cast<std::size_t>(op.node)];
    if (node.name != "window" || op.backward != backward) continue;
    order.rows = part.values()[static_cast<std::size_t>(node.outputs[0])].shape[1];
    if (op.cut >= 0) {
      if (op.tensors[0] >= 0) order.events.emplace_back("s");
      if (op.tensors[1] >= 0) order.events.emplace_back("r");
    } else if (is_window(op.spec.kind, backward)) {
      order.events.push_back(std::to_string(rows_of(op.spec.dims)));
      if (const auto* pool = std::get_if<PoolDims>(&op.spec.dims)) order.relu = pool->relu;
    }
  }
  return order;
}

using Events = std::vector<std::string>;

struct Row {
  WindowCase window;
  int spatial_shard;
  Events forward, backward;
};

// Each case has 9 rows of output, 3 per spatial shard.
const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {{"conv", 3, 1, 1, 9}, 1, {"s", "s", "1", "r", "1", "r", "1"}, {"1", "s", "1", "s", "1", "r", "r"}},
      {{"conv", 3, 2, 1, 9}, 1, {"s", "2", "r", "1"}, {"1", "s", "2", "r"}},
      {{"conv", 3, 2, 1, 9}, 0, {"s", "3"}, {"3", "r"}},  // padding causes no wait
      {{"conv", 5, 2, 2, 9}, 1, {"s", "s", "1", "r", "1", "r", "1"}, {"1", "s", "1", "s", "1", "r", "r"}},
      {{"conv", 5, 3, 2, 9}, 1, {"s", "s", "1", "r", "1", "r", "1"}, {"1", "s", "1", "s", "1", "r", "r"}},
      {{"max_pool", 3, 2, 1, 9}, 1, {"s", "2", "r", "1"}, {"1", "s", "2", "r"}},
      {{"max_pool", 3, 1, 1, 9}, 0, {"s", "2", "r", "1"}, {"1", "s", "2", "r"}},
      {{"max_pool", 2, 2, 0, 9}, 1, {"3"}, {"3"}},
      {{"avg_pool", 3, 2, 1, 9}, 2, {"2", "r", "1"}, {"1", "s", "2"}},
      {{"avg_pool counted", 3, 1, 1, 9}, 1, {"s", "s", "1", "r", "1", "r", "1"}, {"1", "s", "1", "s", "1", "r", "r"}},
  };
  return all;
}

TEST_CASE("halos travel beside inner rows, whatever the window", "[parallel][space]") {
  for (const Row& row : rows()) {
    INFO(row.window.text() << " spatial shard " << row.spatial_shard);
    const Graph graph = one_window(row.window);
    const auto far = make_discrete_device();
    const Order forward = order_of(graph, row.spatial_shard, false, *far);
    CHECK(forward.rows == 3);
    CHECK(forward.events == row.forward);
    CHECK(forward.relu == (row.window.type == "max_pool"));
    CHECK(order_of(graph, row.spatial_shard, true, *far).events == row.backward);
  }
}

TEST_CASE("on the host's own cores all rows wait for the halo", "[parallel][space]") {
  for (const Row& row : rows()) {
    INFO(row.window.text() << " spatial shard " << row.spatial_shard);
    const auto host = open_device("reference", {});
    Events forward = order_of(one_window(row.window), row.spatial_shard, false, *host).events;
    CHECK(forward.back() == "3");
    CHECK(std::count(forward.begin(), forward.end(), "r") == std::count(row.forward.begin(), row.forward.end(), "r"));
    CHECK(order_of(one_window(row.window), row.spatial_shard, true, *host).events.front() == "3");
  }
}

}  // namespace
}  // namespace echelon
