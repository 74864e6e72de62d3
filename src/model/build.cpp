// SPDX-License-Identifier: Apache-2.0
#include "model/build.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "config/traits/layers.hpp"
#include "model/layers/list.hpp"
#include "model/losses/softmax.hpp"
#include "model/losses/values.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {
namespace {

std::string before(const std::string& where) { return where.empty() ? "" : where + ": "; }

// Gives names such as "conv1": the type and its number among the layers of that type.
class Namer {
 public:
  std::string name(const LayerConfig& layer) {
    const int number = ++count_[layer.type];
    return layer.name.empty() ? layer.type + std::to_string(number) : layer.name;
  }

 private:
  std::map<std::string, int> count_;
};

LayerPtr made(const LayerConfig& config, const std::string& name) {
  try {
    return make_layer(config);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}layer '{}' ({}): {}", before(config.where), name, config.type, error.what()));
  }
}

struct Named {
  std::string name;
  LayerPtr layer;
};

// `vocabulary` of an embedding is at least the number of tokens of the text that it reads.
LayerConfig with_vocabulary(LayerConfig config, const SampleForm& form) {
  if (config.type != "embedding") return config;
  const bool target = !config.inputs.empty() && config.inputs.front() == "target";
  const std::int64_t tokens = target ? form.classes : form.vocabulary;
  if (config.vocabulary != 0 && config.vocabulary < tokens)
    throw ConfigError(fmt::format(
        "{}layer of type embedding: vocabulary = {} is too small, because the data has {} tokens; leave the key out",
        before(config.where), config.vocabulary, tokens));
  if (config.vocabulary == 0) config.vocabulary = tokens;
  return config;
}

std::vector<Named> made(const std::vector<LayerConfig>& layers, const SampleForm& form) {
  Namer namer;
  std::vector<Named> all;
  for (const LayerConfig& config : layers) {
    if (config.carry && !form.stream)
      throw ConfigError(fmt::format(
          "{}layer of type {}: carry = true continues the rows of the previous batch, but rows continue only with "
          "data.order = \"stream\"; leave carry out or set that order",
          before(config.where), config.type));
    std::string name = namer.name(config);
    LayerPtr layer = made(with_vocabulary(config, form), name);
    all.push_back({std::move(name), std::move(layer)});
  }
  return all;
}

std::vector<ValueId> inputs_of(const Graph& graph, const LayerConfig& config, const std::string& name, ValueId last) {
  if (config.inputs.empty()) return {last};
  std::vector<ValueId> ids;
  for (const std::string& input : config.inputs) {
    const ValueId id = graph.find(input);
    if (id < 0)
      throw ConfigError(fmt::format("{}layer '{}' ({}): {}", before(config.where), name, config.type,
                                    unknown_name("input", input, graph.value_names())));
    if (input == "labels" || input == "weights" || input == "ids" || input == "lengths")
      throw ConfigError(fmt::format("{}layer '{}' ({}): '{}' cannot be given in inputs: {}; leave it out",
                                    before(config.where), name, config.type, input,
                                    input == "labels" || input == "weights"
                                        ? "only the loss reads it"
                                        : "the layers that use it receive it automatically"));
    ids.push_back(id);
  }
  return ids;
}

bool counts_lengths(const Graph& graph, const Layer& layer, const std::vector<ValueId>& inputs) {
  const auto at = static_cast<std::size_t>(layer.lengths_of());
  return layer.wants_lengths() && at < inputs.size() &&
         graph.values()[static_cast<std::size_t>(inputs[at])].along_samples;
}

// A layer whose output is not used would never be trained: most likely a name was mistyped.
void refuse_unused(const Graph& graph) {
  std::vector<bool> used(graph.values().size(), false);
  for (const Node& node : graph.nodes())
    for (ValueId id : node.inputs) used[static_cast<std::size_t>(id)] = true;
  for (const Node& node : graph.nodes())
    if (&node != &graph.nodes()[static_cast<std::size_t>(graph.loss())] &&
        std::none_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId id) { return used[static_cast<std::size_t>(id)]; }))
      throw ConfigError(
          fmt::format("{}layer '{}' ({}): no later layer reads its output; remove the layer, or name it in the "
                      "inputs of another one",
                      before(node.where), node.name, node.layer->kind()));
}

LayerPtr make_loss(const LossOptions& loss, const SampleForm& form) {
  const bool softmax = loss.kind == "softmax" || (loss.kind == "auto" && form.classes > 0);
  if (loss.label_smoothing > 0 && !softmax)
    throw ConfigError("model.label_smoothing applies only to the softmax loss over classes; leave it out");
  for (const auto& [kind, values] : {std::pair("mse", ValueLoss::squared), std::pair("mae", ValueLoss::absolute),
                                     std::pair("bce", ValueLoss::logistic), std::pair("hinge", ValueLoss::hinge)})
    if (loss.kind == kind) return make_value_loss(values, form.classes);
  if (loss.kind != "auto" && form.classes == 0)
    throw ConfigError(
        fmt::format("model.loss = \"{}\" needs classes, but the labels are real numbers; use \"mse\"", loss.kind));
  if (loss.kind == "dice" && !form.dense)
    throw ConfigError("model.loss = \"dice\" needs a class for every place of a sample; use \"softmax\"");
  if (loss.kind == "dice") return make_class_loss(form.classes, ClassLoss::dice, 0, form.dense);
  if (loss.kind == "focal")
    return make_class_loss(form.classes, ClassLoss::focal, loss.focal_gamma, form.dense, form.mixes);
  if (form.classes > 0) return make_softmax_loss(form.classes, loss.label_smoothing, form.dense, form.mixes);
  return make_value_loss(ValueLoss::squared, form.classes);
}

// ConfigError if a pattern of model.freeze matches nothing, or if nothing is left to train.
void check_frozen(const ModelConfig& model, const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes())
    if (!node.parameters.empty()) names.push_back(node.of);
  for (const Parameter& parameter : graph.parameters().with_frozen()) names.push_back(parameter.name);
  for (const std::string& pattern : model.freeze)
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; }))
      throw ConfigError("model.freeze: " + unknown_name("layer or parameter", pattern, names));
  const std::vector<Parameter>& trained = graph.parameters().all();
  if (!model.freeze.empty() && std::none_of(trained.begin(), trained.end(), [](const Parameter& parameter) {
        return parameter.kind == ParameterKind::weight;
      }))
    throw ConfigError(
        "model.freeze matches every weight of the model, so nothing is left to train; exclude the last layer");
}

// Applies the keys of [model] that concern all embeddings.
void set_embeddings(const ModelConfig& model, std::vector<LayerConfig>& layers) {
  if (!model.dense_embeddings) return;
  bool found = false;
  for (LayerConfig& layer : layers) {
    found = found || layer.sparse;
    layer.sparse = false;
  }
  if (!found) throw ConfigError("model.dense_embeddings is set, but no embedding of the model is sparse; leave it out");
}

// Applies the keys of [model] that concern all batch norm layers.
void set_batch_norms(const ModelConfig& model, std::vector<LayerConfig>& layers) {
  bool found = false;
  for (LayerConfig& layer : layers) {
    if (layer.type != "batch_norm") continue;
    found = true;
    layer.synchronised = layer.synchronised || model.synchronised_batch_norm;
    layer.renorm = layer.renorm || model.batch_renorm;
  }
  if (!found && (model.synchronised_batch_norm || model.batch_renorm))
    throw ConfigError(fmt::format("model.{} is set, but the model has no batch_norm layer; leave it out",
                                  model.batch_renorm ? "batch_renorm" : "synchronised_batch_norm"));
}

// Applies the key of [model] that concerns all dropout layers.
void set_dropouts(const ModelConfig& model, std::vector<LayerConfig>& layers) {
  if (model.dropout < 0) return;
  bool found = false;
  for (LayerConfig& layer : layers) {
    if (layer.type != "dropout") continue;
    found = true;
    layer.rate = model.dropout;
  }
  if (!found) throw ConfigError("model.dropout is set, but the model has no dropout layer; leave it out");
}

// Applies model.init to the layers that name no rule of their own.
void set_inits(const ModelConfig& model, std::vector<LayerConfig>& layers) {
  for (LayerConfig& layer : layers) {
    const LayerTraits* traits = find_traits(kLayers, layer.type);
    if (traits == nullptr || !traits->takes.contains("init")) continue;
    if (layer.init.empty()) layer.init = model.init;
    if (layer.init_range == 0) layer.init_range = model.init_range;
  }
}

// The rules of the layers whose parameters do not begin as is usual, by name.
std::map<std::string, DrawnBy> draw_rules(const std::vector<LayerConfig>& layers, const std::vector<Named>& named) {
  std::map<std::string, DrawnBy> rules;
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (!layers[i].init.empty() && layers[i].init != "default")
      rules[named[i].name] = {.init = layers[i].init, .range = layers[i].init_range};
  return rules;
}

}  // namespace

Graph build_layers(const std::vector<LayerConfig>& layers, const SampleForm& form, const LossOptions& loss_options,
                   const std::vector<std::string>& freeze) {
  if (layers.empty()) throw ConfigError("the model has no layers; give model.zoo or [[model.layers]]");
  Graph graph;
  graph.freeze(freeze);
  ValueId last = graph.input("samples", form.shape, form.tokens() ? ValueType::index : ValueType::real);
  const ValueId labels = graph.input("labels", form.label, form.classes > 0 ? ValueType::index : ValueType::real);
  const ValueId weights = graph.input("weights", form.label);
  if (form.target > 0) graph.input("target", Shape{form.target}, ValueType::index);
  const ValueId lengths = form.lengths ? graph.input("lengths", Shape{}, ValueType::index) : -1;
  const std::vector<Named> named = made(layers, form);
  graph.draw_by(draw_rules(layers, named));
  const bool needs_ids =
      std::any_of(named.begin(), named.end(), [](const Named& one) { return one.layer->wants_ids(); });
  const ValueId ids = needs_ids ? graph.input("ids", Shape{}, ValueType::index) : -1;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::vector<ValueId> inputs = inputs_of(graph, layers[i], named[i].name, last);
    if (lengths >= 0 && counts_lengths(graph, *named[i].layer, inputs)) inputs.push_back(lengths);
    if (named[i].layer->wants_ids()) inputs.push_back(ids);
    last = graph.add(named[i].name, named[i].layer, std::move(inputs), layers[i].where).front();
    graph.set_stage(static_cast<int>(layers[i].stage));
  }
  std::string loss = "loss";
  while (graph.find(loss) >= 0) loss += "_";
  std::vector<ValueId> of_loss = {last, labels, weights};
  if (form.mixes) {
    of_loss.push_back(graph.input("others", form.label, ValueType::index));
    of_loss.push_back(graph.input("other_weights", form.label));
  }
  graph.add(loss, make_loss(loss_options, form), of_loss, layers.back().where);
  graph.set_loss(static_cast<int>(graph.nodes().size()) - 1);
  refuse_unused(graph);
  return graph;
}

Graph build_model(const ModelConfig& model, const SampleForm& form) {
  if (!model.zoo.empty() && !model.layers.empty())
    throw ConfigError("model.zoo and [[model.layers]] cannot both be given; keep one");
  std::vector<LayerConfig> layers = model.zoo.empty() ? model.layers : zoo_layers(model, form);
  set_batch_norms(model, layers);
  set_dropouts(model, layers);
  set_embeddings(model, layers);
  set_inits(model, layers);
  Graph graph = build_layers(layers, form, {model.loss, model.label_smoothing, model.focal_gamma}, model.freeze);
  check_frozen(model, graph);
  return graph;
}

}  // namespace echelon::inline model
