// SPDX-License-Identifier: Apache-2.0
#include "model/fuse.hpp"

#include <algorithm>
#include <map>

#include "base/check.hpp"

namespace echelon::inline model {
namespace {

// Returns the nodes that read each value.
std::vector<std::vector<int>> readers_of(const Graph& graph) {
  std::vector<std::vector<int>> readers(graph.values().size());
  for (int node = 0; node < static_cast<int>(graph.nodes().size()); ++node)
    for (ValueId id : graph.nodes()[static_cast<std::size_t>(node)].inputs)
      readers[static_cast<std::size_t>(id)].push_back(node);
  return readers;
}

// The only reader of the output of `node`, if it has one input, one output and no parameters, and if the loss reads
// neither of the two outputs; else -1.
int follower(const Graph& graph, const std::vector<std::vector<int>>& readers, const Node& node) {
  if (node.outputs.size() != 1) return -1;
  const std::vector<int>& reading = readers[static_cast<std::size_t>(node.outputs[0])];
  if (reading.size() != 1 || reading[0] == graph.loss()) return -1;
  const Node& next = graph.nodes()[static_cast<std::size_t>(reading[0])];
  if (next.inputs.size() != 1 || next.outputs.size() != 1 || !next.parameters.empty()) return -1;
  const std::vector<int>& behind = readers[static_cast<std::size_t>(next.outputs[0])];
  return std::find(behind.begin(), behind.end(), graph.loss()) == behind.end() ? reading[0] : -1;
}

}  // namespace

Graph fused(const Graph& graph) {
  const auto readers = readers_of(graph);
  Graph out = graph.blank();
  std::map<ValueId, ValueId> moved;
  for (std::size_t id = 0; id < graph.values().size(); ++id)
    if (const Value& value = graph.values()[id]; value.producer < 0)
      moved[static_cast<ValueId>(id)] = out.input(value.name, value.shape, value.type);

  std::vector<bool> gone(graph.nodes().size(), false);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (gone[i]) continue;
    const Node& node = graph.nodes()[i];
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(moved.at(id));
    const int next = follower(graph, readers, node);
    const LayerPtr both =
        next < 0 ? nullptr : node.layer->fused_with(*graph.nodes()[static_cast<std::size_t>(next)].layer);
    const Node& ends = both ? graph.nodes()[static_cast<std::size_t>(next)] : node;
    const std::string& name = node.parameters.empty() ? ends.name : node.name;
    const std::string& of = node.parameters.empty() ? ends.of : node.of;
    const std::vector<ValueId> outputs = out.add(name, both ? both : node.layer, std::move(inputs), node.where, of);
    if (both) gone[static_cast<std::size_t>(next)] = true;
    for (std::size_t o = 0; o < outputs.size(); ++o) moved[ends.outputs[o]] = outputs[o];
    if (static_cast<int>(i) == graph.loss()) out.set_loss(static_cast<int>(out.nodes().size()) - 1);
  }
  ECHELON_CHECK_EQ(out.parameters().elems(), graph.parameters().elems(), "fusion must not change parameters");
  ECHELON_CHECK_EQ(out.parameters().frozen_elems(), graph.parameters().frozen_elems(),
                   "fusion must not change parameters");
  return out;
}

}  // namespace echelon::inline model
