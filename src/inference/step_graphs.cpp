// SPDX-License-Identifier: Apache-2.0
#include "inference/step_graphs.hpp"

#include <fmt/format.h>

#include <map>

#include "base/error.hpp"
#include "model/build.hpp"
#include "model/splits/layer_split.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline inference {
namespace {

constexpr const char* kLengths = "lengths";

// Removes the states that layers keep from batch to batch, because the step gets its states as inputs.
ModelConfig without_carry(ModelConfig model, const SampleForm& form) {
  if (!model.zoo.empty()) model.layers = zoo_layers(model, form), model.zoo.clear();
  for (LayerConfig& layer : model.layers) layer.carry = false;
  return model;
}

class Cutter {
 public:
  Cutter(const ModelConfig& model, const SampleForm& form)
      : whole_(build_model(without_carry(model, form), form)), token_(form.target > 0 ? "target" : "samples") {
    cut_ = {.encoder = {}, .handed = {}, .step = whole_.blank(), .states = {}, .token = token_, .logits = {}};
    if (form.target > 0) cut_.encoder = whole_.blank();
  }

  StepGraphs cut() {
    find_step();
    for (std::size_t n = 0; n < whole_.nodes().size(); ++n) {
      const Node& node = whole_.nodes()[n];
      if (static_cast<int>(n) == whole_.loss())
        cut_.logits = value(node.inputs.front()).name;
      else if (in_step(node.outputs.front()))
        add_to_step(node);
      else
        add_to_encoder(node);
    }
    return std::move(cut_);
  }

 private:
  const Value& value(ValueId id) const { return whole_.values()[static_cast<std::size_t>(id)]; }
  bool in_step(ValueId id) const { return step_[static_cast<std::size_t>(id)]; }

  // Finds the values that depend on the token.
  void find_step() {
    step_.assign(whole_.values().size(), false);
    step_[static_cast<std::size_t>(whole_.find(token_))] = true;
    for (const Node& node : whole_.nodes()) {
      bool depends = false;
      for (const ValueId id : node.inputs) depends = depends || in_step(id);
      for (const ValueId id : node.outputs) step_[static_cast<std::size_t>(id)] = depends;
    }
  }

  [[noreturn]] static void refuse(const Node& node, const char* why) {
    throw ConfigError(fmt::format(
        "{}: layer '{}' ({}) {}, but text is generated token by token, so layers may read only the newest token "
        "and a state, as in charlstm, chargru, wordlstm and translation",
        node.where, node.name, node.layer->kind(), why));
  }

  void require_steps(const Node& node) const {
    const LayerSplit& split = layer_split(*node.layer);
    for (const ValueId id : node.inputs) {
      const Value& input = value(id);
      if (!in_step(id) || input.producer < 0) continue;
      const Node& before = whole_.nodes()[static_cast<std::size_t>(input.producer)];
      if (id != before.outputs.front()) refuse(node, "reads the state after the last token");
    }
    const bool over_source =
        node.layer->kind() == "attention" && !in_step(node.inputs.at(1)) && !in_step(node.inputs.at(2));
    if (!over_source && split.on_steps({.begin = 0, .end = 1, .all = 2}) == nullptr)
      refuse(node, "reads all positions of a text");
  }

  // Returns the step's input for a value that is not computed in the step.
  ValueId handed(ValueId id) {
    const Value& from = value(id);
    if (const ValueId known = cut_.step.find(from.name); known >= 0) return known;
    if (from.producer >= 0) cut_.handed.push_back(from.name);
    cut_.lengths = cut_.lengths || from.name == kLengths;
    return cut_.step.input(from.name, from.shape, from.type);
  }

  ValueId mapped(ValueId id) {
    if (!in_step(id)) return handed(id);
    const ValueId known = cut_.step.find(value(id).name);
    return known >= 0 ? known : cut_.step.input(token_, value(id).shape, value(id).type);
  }

  void add_to_step(const Node& node) {
    require_steps(node);
    const int states = layer_split(*node.layer).recurrent_states();
    std::vector<ValueId> inputs;
    if (states == 0) {
      for (const ValueId id : node.inputs) inputs.push_back(mapped(id));
    } else {
      inputs.push_back(mapped(node.inputs.front()));
      for (int i = 0; i < states; ++i) inputs.push_back(add_state(node, i));
    }
    cut_.step.add(node.name, node.layer, std::move(inputs), node.where);
  }

  ValueId add_state(const Node& node, int index) {
    const auto at = static_cast<std::size_t>(index) + 1;
    const Value& after = value(node.outputs.at(at));
    StepState state{.input = fmt::format("{} before", after.name),
                    .output = after.name,
                    .initial = {},
                    .units = after.shape.elems()};
    if (at < node.inputs.size() && value(node.inputs[at]).name != kLengths) state.initial = value(node.inputs[at]).name;
    cut_.states.push_back(state);
    return cut_.step.input(state.input, after.shape);
  }

  void add_to_encoder(const Node& node) {
    if (!cut_.encoder) refuse(node, "does not depend on the text");
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      const Value& from = value(id);
      const ValueId known = cut_.encoder->find(from.name);
      inputs.push_back(known >= 0 ? known : cut_.encoder->input(from.name, from.shape, from.type));
    }
    cut_.encoder->add(node.name, node.layer, std::move(inputs), node.where);
  }

  Graph whole_;
  std::string token_;
  std::vector<bool> step_;  // [value of the whole model]
  StepGraphs cut_;
};

}  // namespace

StepGraphs step_graphs(const ModelConfig& model, SampleForm form) {
  if (!form.tokens() || form.classes == 0 || form.label.rank() != 1)
    throw ConfigError(
        "the model does not predict a token at each position; only language models (data of kind text) and translation "
        "models (data of kind pairs) can generate text");
  form.stream = false;
  form.label = {1};
  if (form.target > 0)
    form.target = 1;
  else
    form.shape = {1};
  return Cutter(model, form).cut();
}

}  // namespace echelon::inline inference
