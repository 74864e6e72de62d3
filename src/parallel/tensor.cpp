// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "model/splits/cut.hpp"

namespace echelon::inline parallel {
namespace {

enum class Role {
  whole,    // the whole layer on every shard
  outputs,  // computes some outputs, which stay on the shard for the next layers (column parallel)
  between,  // computes the channels that are on the shard
  inputs,   // takes the inputs that are on the shard; its outputs are summed (row parallel)
  alone,    // computes some outputs, which are gathered
  logits,   // computes some classes, from which the loss is computed without a gather
  rows,     // has some rows of a table; its outputs are summed
  states    // computes some units of the state, which are gathered at every step
};

std::int64_t units_in(const Shape& sample) { return sample.rank() == 2 ? sample[1] : sample[0]; }

// The role of each node.
class Roles {
 public:
  Roles(const Graph& graph, const TensorShardCoord& coord)
      : graph_(graph), shards_(coord.shards), roles_(graph.nodes().size(), Role::whole) {
    readers_.resize(graph.values().size());
    for (int i = 0; i < nodes(); ++i)
      for (ValueId id : node(i).inputs) readers_[static_cast<std::size_t>(id)].push_back(i);
    for (int i = 0; i < nodes(); ++i) {
      if (split(i).table_rows() >= shards_)
        set(i, Role::rows);
      else if (coord.recurrent_from > 0 &&
               split(i).state_units() >= std::max<std::int64_t>(shards_, coord.recurrent_from))
        set(i, Role::states);
      else if (roles_[static_cast<std::size_t>(i)] == Role::whole && has_outputs(i))
        choose(i);
    }
  }
  Role operator[](int node) const { return roles_[static_cast<std::size_t>(node)]; }
  bool any() const {
    return std::any_of(roles_.begin(), roles_.end(), [](Role role) { return role != Role::whole; });
  }

 private:
  int nodes() const { return static_cast<int>(graph_.nodes().size()); }
  const Node& node(int i) const { return graph_.nodes()[static_cast<std::size_t>(i)]; }
  const LayerSplit& split(int i) const { return layer_split(*node(i).layer); }
  const Shape& output(int i) const { return graph_.values()[static_cast<std::size_t>(node(i).outputs[0])].shape; }
  const Shape& input(int i) const { return graph_.values()[static_cast<std::size_t>(node(i).inputs[0])].shape; }
  Units probe(const Shape& sample) const { return units_of(units_in(sample), shards_, 0); }

  // Whether the layer has windows over series (C, T), whose channels no split divides.
  bool over_series(int i) const { return split(i).row_window() && input(i).rank() == 2; }
  bool has_outputs(int i) const {
    return !over_series(i) && units_in(output(i)) >= shards_ && split(i).with_outputs(probe(output(i))) != nullptr;
  }
  bool has_inputs(int i) const {
    return !over_series(i) && units_in(input(i)) >= shards_ && split(i).with_inputs(probe(input(i))) != nullptr;
  }
  // Not for (T, F), where the elements of a feature are not contiguous.
  bool keeps_channels_apart(int i) const {
    return input(i).rank() != 2 && split(i).on_channels(probe(input(i))) != nullptr;
  }

  // Sets the roles of a layer that computes some outputs and of the layers behind it, along the only reader of each
  // value.
  void choose(int first) {
    std::vector<int> between;
    for (int at = first;;) {
      const std::vector<int>& readers = readers_[static_cast<std::size_t>(node(at).outputs[0])];
      const int next = readers.size() == 1 && node(at).outputs.size() == 1 ? readers[0] : -1;
      if (next >= 0 && node(next).inputs[0] == node(at).outputs[0]) {
        if (at == first && next == graph_.loss() && split(next).on_classes(probe(output(at)), 0, shards_))
          return set(first, Role::logits);
        if (has_inputs(next)) {
          set(first, Role::outputs);
          for (int i : between) set(i, Role::between);
          return set(next, Role::inputs);
        }
        if (keeps_channels_apart(next)) {
          between.push_back(at = next);
          continue;
        }
      }
      return set(first, Role::alone);
    }
  }
  void set(int i, Role role) { roles_[static_cast<std::size_t>(i)] = role; }

  const Graph& graph_;
  int shards_;
  std::vector<Role> roles_;
  std::vector<std::vector<int>> readers_;  // by value: nodes
};

class Sharder {
 public:
  Sharder(const Graph& whole, const TensorShardCoord& coord, std::vector<Cut>& cuts)
      : whole_(whole),
        stage_(coord.stage),
        shards_(coord.shards),
        shard_(coord.shard),
        roles_(whole, coord),
        cuts_(cuts),
        part_(whole.blank()) {
    if (!roles_.any())
      throw ConfigError(
          fmt::format("parallel.tensor = {}: no layer {}has at least that many units; use a smaller number", shards_,
                      stage_ > 0 ? fmt::format("of stage {} ", stage_) : ""));
  }

  Graph build() {
    for (std::size_t id = 0; id < whole_.values().size(); ++id)
      if (const Value& value = whole_.values()[id]; value.producer < 0)
        here_[static_cast<ValueId>(id)] = part_.input(value.name, value.shape, value.type);
    for (int i = 0; i < static_cast<int>(whole_.nodes().size()); ++i) add(i);
    return std::move(part_);
  }

 private:
  const Shape& shape_of(ValueId id) const { return whole_.values()[static_cast<std::size_t>(id)].shape; }
  Units units(const Shape& sample) const { return units_of(units_in(sample), shards_, shard_); }

  int new_cut(ValueId value, CutKind kind) {
    Cut cut{.value = whole_.values()[static_cast<std::size_t>(value)].name,
            .shape = shape_of(value),
            .kind = kind,
            .from = stage_,
            .to = stage_};
    if (kind == CutKind::gather)
      for (int s = 0; s < shards_; ++s) cut.counts.push_back(units_of(units_in(cut.shape), shards_, s).count());
    cuts_.push_back(std::move(cut));
    return static_cast<int>(cuts_.size()) - 1;
  }

  void add(int index) {
    const Node& node = whole_.nodes()[static_cast<std::size_t>(index)];
    const Role role = roles_[index];
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(here_.at(id));
    const Shape& x = shape_of(node.inputs.empty() ? node.outputs[0] : node.inputs[0]);
    const Shape& y = shape_of(node.outputs[0]);
    const LayerSplit& split = layer_split(*node.layer);
    LayerPtr layer = node.layer;
    if (role == Role::outputs || role == Role::alone || role == Role::logits) {
      layer = split.with_outputs(units(y));
      inputs[0] = spread(node.inputs[0]);
    }
    // A flattened image has several units for each of its channels: cut between channels.
    if (role == Role::between) layer = split.on_channels(part_units_.at(node.inputs[0]));
    if (role == Role::inputs) layer = split.with_inputs(part_units_.at(node.inputs[0]));
    if (role == Role::states) {
      const auto [gathered, summed] = state_cuts(node);
      layer = split.on_states(units_of(split.state_units(), shards_, shard_), gathered, summed);
      inputs[0] = spread(node.inputs[0]);
    }
    if (role == Role::rows) layer = split.with_inputs(units_of(split.table_rows(), shards_, shard_));
    if (index == whole_.loss() && part_units_.contains(node.inputs[0]))
      layer = split.on_classes(part_units_.at(node.inputs[0]), partials_cut(node), shards_);
    std::vector<ValueId> outputs = part_.add(node.name, layer, std::move(inputs), node.where, node.of);
    if (role == Role::outputs || role == Role::logits) part_units_[node.outputs[0]] = units(y);
    if (role == Role::between)
      part_units_[node.outputs[0]] = part_units_.at(node.inputs[0]).times(units_in(y) / units_in(x));
    if (role == Role::inputs || role == Role::rows)
      outputs[0] = behind("sum", CutKind::sum, node.outputs[0], outputs[0]);
    if (role == Role::alone) outputs[0] = behind("gather", CutKind::gather, node.outputs[0], outputs[0]);
    for (std::size_t i = 0; i < outputs.size(); ++i) here_[node.outputs[i]] = outputs[i];
    if (index == whole_.loss()) part_.set_loss(static_cast<int>(part_.nodes().size()) - 1);
  }

  // The partial results of the loss (maximum, sum of exponentials, logit of the label) of each part of the classes.
  int partials_cut(const Node& loss) {
    const Shape& labels = shape_of(loss.inputs[1]);
    std::vector<std::int64_t> extents(labels.extents().begin(), labels.extents().end());
    extents.push_back(SoftmaxPartDims::kPartials * shards_);
    cuts_.push_back({.value = loss.name,
                     .shape = Shape(extents),
                     .kind = CutKind::gather,
                     .from = stage_,
                     .to = stage_,
                     .counts = std::vector<std::int64_t>(static_cast<std::size_t>(shards_), SoftmaxPartDims::kPartials),
                     .wide = true});
    return static_cast<int>(cuts_.size()) - 1;
  }

  // The cuts of a recurrent layer: its states are gathered, the gradients of its states summed.
  std::pair<int, int> state_cuts(const Node& node) {
    const std::int64_t all = layer_split(*node.layer).state_units(), steps = shape_of(node.inputs[0])[0];
    Cut gathered{.value = node.name, .shape = Shape{all}, .kind = CutKind::gather, .from = stage_, .to = stage_};
    gathered.wide = true;
    gathered.times = steps;
    Cut summed = gathered;
    summed.kind = CutKind::sum;
    for (int s = 0; s < shards_; ++s) gathered.counts.push_back(units_of(all, shards_, s).count());
    const int number = static_cast<int>(cuts_.size());
    cuts_.insert(cuts_.end(), {std::move(gathered), std::move(summed)});
    return {number, number + 1};
  }

  ValueId behind(const char* what, CutKind kind, ValueId value, ValueId id) {
    const int cut = new_cut(value, kind);
    const LayerPtr layer = kind == CutKind::sum ? make_sum(cut) : make_gather(cut, units(shape_of(value)));
    return part_.add(fmt::format("{} {}", what, cut), layer, {id}).front();
  }

  // The value behind a `spread` node, one for all layers that compute some of their outputs from it.
  ValueId spread(ValueId value) {
    if (!whole_.values()[static_cast<std::size_t>(value)].wants_gradient) return here_.at(value);
    if (const auto found = spread_.find(value); found != spread_.end()) return found->second;
    const int cut = new_cut(value, CutKind::sum);
    return spread_[value] = part_.add(fmt::format("spread {}", cut), make_spread(cut), {here_.at(value)}).front();
  }

  const Graph& whole_;
  const int stage_, shards_, shard_;
  const Roles roles_;
  std::vector<Cut>& cuts_;
  Graph part_;
  std::map<ValueId, ValueId> here_;      // by value of the whole graph
  std::map<ValueId, ValueId> spread_;    // by value of the whole graph
  std::map<ValueId, Units> part_units_;  // for values of which the shard has some units
};

std::string_view by(Role role) {
  switch (role) {
    case Role::outputs:
    case Role::alone: return "outputs";
    case Role::between: return "channels";
    case Role::inputs: return "inputs";
    case Role::logits: return "classes";
    case Role::rows: return "rows";
    case Role::states: return "units";
    case Role::whole: break;
  }
  return "";
}

}  // namespace

std::string shards_text(const Graph& graph, const TensorShardCoord& coord) {
  struct Alike {
    std::string_view by, kind;
    int layers;
  };
  const Roles roles(graph, coord);
  std::vector<Alike> groups;
  for (int i = 0; i < static_cast<int>(graph.nodes().size()); ++i) {
    const Node& node = graph.nodes()[static_cast<std::size_t>(i)];
    if (node.parameters.empty() || node.owner != i) continue;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Alike& group) {
      return group.by == by(roles[i]) && group.kind == node.layer->kind();
    });
    if (same == groups.end())
      groups.push_back({by(roles[i]), node.layer->kind(), 1});
    else
      ++same->layers;
  }
  std::string split, whole;
  for (const Alike& group : groups) {
    std::string& text = group.by.empty() ? whole : split;
    text +=
        fmt::format("{}{}{}{}{}", text.empty() ? "" : ", ", group.layers > 1 ? fmt::format("{} ", group.layers) : "",
                    group.kind, group.by.empty() ? "" : " by ", group.by);
  }
  return split + (whole.empty() ? "" : "; whole: " + whole);
}

Units units_of(std::int64_t all, int shards, int shard) {
  return {all * shard / shards, all * (shard + 1) / shards, all};
}

Graph shard_graph(const Graph& graph, const TensorShardCoord& coord, std::vector<Cut>& cuts) {
  return Sharder(graph, coord, cuts).build();
}

}  // namespace echelon::inline parallel
