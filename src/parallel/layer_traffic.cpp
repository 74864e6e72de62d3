// SPDX-License-Identifier: Apache-2.0
#include "parallel/layer_traffic.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline parallel {
namespace {

constexpr double kValueBytes = 4;

double elems_of(const Graph& graph, const std::vector<ValueId>& values) {
  double elems = 0;
  for (const ValueId id : values)
    elems += static_cast<double>(graph.values()[static_cast<std::size_t>(id)].shape.elems());
  return elems;
}

bool divides(const Graph& graph, const Node& node, int ranks) {
  const LayerSplit& split = layer_split(*node.layer);
  if (split.state_units() >= ranks) return true;
  const Shape& y = graph.values()[static_cast<std::size_t>(node.outputs.front())].shape;
  const std::int64_t units = y.rank() == 2 ? y[1] : y.rank() > 0 ? y[0] : 0;
  const bool over_series = split.row_window() && y.rank() == 2;  // Roles in tensor.cpp divides none
  return !over_series && units >= ranks && split.with_outputs({0, units / ranks, units}) != nullptr;
}

}  // namespace

std::vector<LayerTraffic> layer_traffic(const Graph& graph, int ranks, double samples) {
  std::vector<LayerTraffic> layers;
  const double k = ranks;
  for (const Node& node : graph.nodes()) {
    std::int64_t weights = 0;
    bool by_rows = false;
    for (const int p : node.parameters) {
      const Parameter& parameter = graph.parameters()[p];
      if (parameter.kind == ParameterKind::weight && !parameter.frozen) weights += parameter.elems();
      by_rows |= parameter.sparse || !graph.declares(node, p);
    }
    if (weights == 0 || by_rows || !divides(graph, node, ranks)) continue;
    const double x = elems_of(graph, node.inputs), y = elems_of(graph, node.outputs);
    layers.push_back({.name = node.name,
                      .weights = weights,
                      .replica_bytes = 2 * (k - 1) / k * static_cast<double>(weights) * kValueBytes,
                      .shard_bytes = 2 * (k - 1) * samples * (x + y / k) * kValueBytes});
  }
  return layers;
}

std::string layer_traffic_text(const std::vector<LayerTraffic>& layers, int ranks) {
  double replica = 0, as_replicas = 0, as_shards = 0;
  std::string names;
  for (const LayerTraffic& layer : layers) {
    replica += layer.replica_bytes;
    if (!layer.shards_send_less()) continue;
    names += (names.empty() ? "" : ", ") + layer.name;
    as_replicas += layer.replica_bytes;
    as_shards += layer.shard_bytes;
  }
  if (layers.empty()) return {};
  if (names.empty())
    return fmt::format(
        "Keep every layer replicated: divided over {} ranks, no layer would send fewer bytes than its replicas do.",
        ranks);
  return fmt::format(
      "Divide {} over {} ranks inside a host (parallel.tensor): they would send {} per step and rank instead of {} "
      "(all "
      "layers as replicas send {}); keep the other layers replicated.",
      names, ranks, bytes_text(as_shards), bytes_text(as_replicas), bytes_text(replica));
}

}  // namespace echelon::inline parallel
