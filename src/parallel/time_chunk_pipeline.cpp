// SPDX-License-Identifier: Apache-2.0
#include "parallel/time_chunk_pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/check.hpp"
#include "base/error.hpp"
#include "model/splits/steps.hpp"
#include "parallel/stages.hpp"
#include "parallel/tensor.hpp"

namespace echelon::inline parallel {
namespace {

const Node& node_of(const Graph& graph, int node) { return graph.nodes()[static_cast<std::size_t>(node)]; }
const Value& value_of(const Graph& graph, ValueId id) { return graph.values()[static_cast<std::size_t>(id)]; }
bool is_recurrent(const Node& node) { return layer_split(*node.layer).recurrent_states() > 0; }

// (T, F), or tokens (T).
bool is_sequence(const Value& value) {
  return value.shape.rank() == 2 || (value.shape.rank() == 1 && value.type == ValueType::index);
}
// The inputs that Layer::wants_ids and wants_lengths add: one number per sample.
bool is_of_sample(const Value& value) { return value.producer < 0 && (value.name == "ids" || value.name == "lengths"); }

// The inputs that are sequences of the same steps. States (of recurrent layers), ids and lengths follow them.
std::vector<ValueId> sequences(const Graph& graph, const Node& node) {
  std::vector<ValueId> ids;
  for (ValueId id : node.inputs)
    if (!is_of_sample(value_of(graph, id)) && (ids.empty() || !is_recurrent(node))) ids.push_back(id);
  return ids;
}

bool can_be_cut(const Graph& graph, const Node& node) {
  const std::vector<ValueId> ids = sequences(graph, node);
  if (ids.empty() || !std::all_of(ids.begin(), ids.end(), [&](ValueId id) { return is_sequence(value_of(graph, id)); }))
    return false;
  const std::int64_t steps = value_of(graph, ids[0]).shape[0];
  return layer_split(*node.layer).on_steps({0, steps, steps}) != nullptr;
}

// By node: whether it is cut into time chunks. Layers that can be cut are cut where sequences connect them, through
// other layers that can be cut, with a recurrent layer.
std::vector<bool> which_are_cut(const Graph& graph) {
  const auto nodes = graph.nodes().size();
  std::vector<int> part(nodes);
  std::iota(part.begin(), part.end(), 0);
  const auto root = [&](std::size_t i) {
    while (part[i] != static_cast<int>(i)) i = static_cast<std::size_t>(part[i]);
    return i;
  };
  std::vector<bool> can(nodes), recurrent(nodes), cut(nodes);
  for (std::size_t i = 0; i < nodes; ++i) {
    can[i] = can_be_cut(graph, graph.nodes()[i]);
    if (!can[i]) continue;
    for (ValueId id : sequences(graph, graph.nodes()[i]))
      if (const int from = value_of(graph, id).producer; from >= 0 && can[static_cast<std::size_t>(from)])
        part[root(static_cast<std::size_t>(from))] = static_cast<int>(root(i));
  }
  for (std::size_t i = 0; i < nodes; ++i)
    if (can[i] && is_recurrent(graph.nodes()[i])) recurrent[root(i)] = true;
  for (std::size_t i = 0; i < nodes; ++i) cut[i] = can[i] && recurrent[root(i)];
  return cut;
}

class TimeCutter {
 public:
  TimeCutter(const Graph& whole, const std::vector<int>& stages, int chunks)
      : whole_(whole), stages_(stages), chunks_(chunks), cut_(which_are_cut(whole)), phase_(whole.nodes().size()) {
    if (std::find(cut_.begin(), cut_.end(), true) == cut_.end())
      throw ConfigError(fmt::format(
          "parallel.time_chunks = {} cuts the steps of recurrent layers (rnn, lstm, gru without reverse), but "
          "the model has none; leave it out",
          chunks));
    made_.graph = whole.blank();
  }

  ChunkedGraph run() {
    for (const Value& value : whole_.values())
      if (value.producer < 0)
        whole_value_[whole_.find(value.name)] = made_.graph.input(value.name, value.shape, value.type);
    for (const auto& [phase, chunk, node] : listing())
      if (chunk < chunks_)
        add_chunk(node, chunk);
      else
        add_whole(node);
    return std::move(made_);
  }

 private:
  bool is_cut(int node) const { return node >= 0 && cut_[static_cast<std::size_t>(node)]; }
  int stage(int node) const { return stages_[static_cast<std::size_t>(node)]; }
  // Whether the value exists as chunks: the first output of a layer that is cut. Its final states exist once, after the
  // last chunk.
  bool in_chunks(ValueId id) const {
    const int from = value_of(whole_, id).producer;
    return is_cut(from) && node_of(whole_, from).outputs[0] == id;
  }

  // (phase, chunk, node) in the order of the new graph; a whole node follows all chunks of its phase. A phase ends at a
  // layer that reads all steps; layers that read its output in chunks are in the next phase.
  std::vector<std::tuple<int, int, int>> listing() {
    std::vector<std::tuple<int, int, int>> all;
    for (int i = 0; i < static_cast<int>(whole_.nodes().size()); ++i) {
      int& phase = phase_[static_cast<std::size_t>(i)];
      for (ValueId id : node_of(whole_, i).inputs)
        if (const int from = value_of(whole_, id).producer; from >= 0)
          phase = std::max(phase, phase_[static_cast<std::size_t>(from)] + (is_cut(i) && !in_chunks(id) ? 1 : 0));
      for (int chunk = is_cut(i) ? 0 : chunks_; chunk < chunks_ + (is_cut(i) ? 0 : 1); ++chunk)
        all.emplace_back(phase, chunk, i);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  std::vector<ValueId> put(const std::string& name, const LayerPtr& layer, std::vector<ValueId> inputs, int stage,
                           const Node* of) {
    made_.stages.push_back(stage);
    return made_.graph.add(name, layer, std::move(inputs), of ? of->where : "", of ? of->name : "");
  }

  void add_chunk(int index, int chunk) {
    const Node& node = node_of(whole_, index);
    const std::vector<ValueId> cut = sequences(whole_, node);
    const Units steps = units_of(steps_of(node), chunks_, chunk);
    std::vector<ValueId>& last = last_outputs_[index];
    std::vector<ValueId> inputs;
    for (ValueId id : cut) inputs.push_back(chunk_of(id, chunk, stage(index)));
    if (chunk > 0 && is_recurrent(node)) inputs.insert(inputs.end(), last.begin() + 1, last.end());
    for (ValueId id : node.inputs)
      if (is_of_sample(value_of(whole_, id)) || (chunk == 0 && std::find(cut.begin(), cut.end(), id) == cut.end()))
        inputs.push_back(joined(id, stage(index)));
    last = put(fmt::format("{}@{}", node.name, chunk), layer_split(*node.layer).on_steps(steps), std::move(inputs),
               stage(index), &node);
    ECHELON_CHECK_EQ(last.size(), static_cast<std::size_t>(1 + layer_split(*node.layer).recurrent_states()),
                     "a time chunk of '{}' has the wrong number of outputs", node.name);
    chunks_of_[node.outputs[0]].push_back(last[0]);
    for (std::size_t i = 1; i < last.size(); ++i) whole_value_[node.outputs[i]] = last[i];
  }

  std::int64_t steps_of(const Node& node) const {
    const std::int64_t steps = value_of(whole_, sequences(whole_, node)[0]).shape[0];
    if (steps < chunks_)
      throw ConfigError(
          fmt::format("{}{}layer '{}' takes sequences of {} steps, which cannot be cut into parallel.time_chunks = {}; "
                      "use at most {}",
                      node.where, node.where.empty() ? "" : ": ", node.name, steps, chunks_, steps));
    return steps;
  }

  void add_whole(int index) {
    const Node& node = node_of(whole_, index);
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(joined(id, stage(index)));
    const std::vector<ValueId> outputs = put(node.name, node.layer, std::move(inputs), stage(index), &node);
    for (std::size_t i = 0; i < outputs.size(); ++i) whole_value_[node.outputs[i]] = outputs[i];
    if (index == whole_.loss()) made_.graph.set_loss(static_cast<int>(made_.graph.nodes().size()) - 1);
    for (ValueId id : node.outputs)
      if (read_in_chunks(id)) split(id, stage(index));
  }

  bool read_in_chunks(ValueId id) const {
    for (int i = 0; i < static_cast<int>(whole_.nodes().size()); ++i) {
      const std::vector<ValueId> ids = is_cut(i) ? sequences(whole_, node_of(whole_, i)) : std::vector<ValueId>{};
      if (std::find(ids.begin(), ids.end(), id) != ids.end()) return true;
    }
    return false;
  }

  // A chunk of a sequence for a layer of this stage. Inputs of the model are on every stage and cut there; other values
  // are cut where they are computed, so that they are sent chunk by chunk.
  ValueId chunk_of(ValueId id, int chunk, int stage) {
    const auto at = static_cast<std::size_t>(chunk);
    if (in_chunks(id)) return chunks_of_.at(id)[at];
    const int from = value_of(whole_, id).producer;
    return split(id, from < 0 ? stage : this->stage(from))[at];
  }

  const std::vector<ValueId>& split(ValueId id, int stage) {
    std::vector<ValueId>& chunks = split_[{id, stage}];
    const Value& value = value_of(whole_, id);
    if (!chunks.empty()) return chunks;
    std::vector<std::int64_t> steps;
    for (int chunk = 0; chunk < chunks_; ++chunk) steps.push_back(units_of(value.shape[0], chunks_, chunk).count());
    return chunks = put(name_on(value.name + " in steps", stage),
                        make_split_steps(std::move(steps), value.type == ValueType::index), {whole_value_.at(id)},
                        stage, nullptr);
  }

  // A whole value for a layer of this stage; chunks are concatenated there, after they were sent one by one.
  ValueId joined(ValueId id, int stage) {
    if (!in_chunks(id)) return whole_value_.at(id);
    const auto [place, fresh] = joined_.try_emplace({id, stage});
    if (fresh)
      place->second =
          put(name_on(value_of(whole_, id).name, stage), make_join_steps(), chunks_of_.at(id), stage, nullptr).front();
    return place->second;
  }

  std::string name_on(const std::string& name, int stage) const {
    return made_.graph.find(name) < 0 ? name : fmt::format("{} on stage {}", name, stage);
  }

  const Graph& whole_;
  const std::vector<int>& stages_;
  const int chunks_;
  const std::vector<bool> cut_;  // by node
  std::vector<int> phase_;       // by node
  ChunkedGraph made_;
  // By value of the whole graph.
  std::map<ValueId, ValueId> whole_value_;
  std::map<ValueId, std::vector<ValueId>> chunks_of_;
  std::map<std::pair<ValueId, int>, ValueId> joined_;              // by value and stage
  std::map<std::pair<ValueId, int>, std::vector<ValueId>> split_;  // by value and stage
  std::map<int, std::vector<ValueId>> last_outputs_;               // by node: outputs of the chunk added last
};

// By node: the number of recurrent layers on the longest path of sequences to it, itself included.
std::vector<int> depths(const Graph& graph) {
  std::vector<int> depth(graph.nodes().size());
  for (std::size_t i = 0; i < depth.size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (is_recurrent(node)) depth[i] = 1;
    for (ValueId id : node.inputs)
      if (const int from = value_of(graph, id).producer; from >= 0)
        depth[i] = std::max(
            depth[i], depth[static_cast<std::size_t>(from)] + (is_recurrent(node) && id == node.inputs[0] ? 1 : 0));
  }
  return depth;
}

}  // namespace

std::vector<int> time_chunk_stages(const Graph& whole, const std::vector<double>& costs, int stages) {
  const std::vector<int> depth = depths(whole);
  const auto nodes = whole.nodes().size();
  std::vector<std::size_t> order(nodes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool by_hand =
      std::any_of(whole.nodes().begin(), whole.nodes().end(), [](const Node& node) { return node.stage >= 0; });
  if (!by_hand)
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return depth[a] < depth[b]; });

  Graph sorted;
  std::map<ValueId, ValueId> moved;
  for (const Value& value : whole.values())
    if (value.producer < 0) moved[whole.find(value.name)] = sorted.input(value.name, value.shape, value.type);
  std::vector<double> sorted_costs;
  std::vector<bool> together;            // whether it is with the node before
  std::map<int, std::size_t> recurrent;  // by depth: the last one so far
  for (std::size_t i = 0; i < nodes; ++i) {
    const Node& node = whole.nodes()[order[i]];
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(moved.at(id));
    const std::vector<ValueId> outputs = sorted.add(node.name, node.layer, std::move(inputs), node.where);
    sorted.set_stage(node.stage);
    for (std::size_t o = 0; o < outputs.size(); ++o) moved[node.outputs[o]] = outputs[o];
    sorted_costs.push_back(costs[order[i]]);
    together.push_back(false);
    if (!is_recurrent(node)) continue;
    const auto [last, first] = recurrent.try_emplace(depth[order[i]], i);
    for (std::size_t j = last->second + 1; !first && j <= i; ++j) together[j] = true;
    last->second = i;
  }
  const std::vector<int> of = assign_stages(sorted, sorted_costs, stages, together);
  std::vector<int> by_node(nodes);
  for (std::size_t i = 0; i < nodes; ++i) by_node[order[i]] = of[i];
  return by_node;
}

ChunkedGraph cut_time(const Graph& whole, const std::vector<int>& stages, int chunks) {
  return TimeCutter(whole, stages, chunks).run();
}

std::vector<std::string> uncut_layers(const Graph& whole) {
  const std::vector<bool> cut = which_are_cut(whole);
  std::vector<std::string> names;
  for (int i = 0; i < static_cast<int>(cut.size()); ++i) {
    const Node& node = node_of(whole, i);
    const bool takes = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId id) { return is_sequence(value_of(whole, id)); });
    if (takes && !cut[static_cast<std::size_t>(i)] && i != whole.loss()) names.push_back(node.name);
  }
  return names;
}

}  // namespace echelon::inline parallel
