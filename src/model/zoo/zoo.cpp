// SPDX-License-Identifier: Apache-2.0
#include "model/zoo/zoo.hpp"

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon::inline model {
namespace {

std::vector<LayerConfig> layers_of(const ModelConfig& config, const SampleForm& form) {
#define X(model) \
  if (config.zoo == #model) return zoo_##model(form);
  ECHELON_ZOO(X)
#undef X
#define X(model) \
  if (config.zoo == #model) return zoo_##model(form, config);
  ECHELON_ZOO_OF_WIDTHS(X)
#undef X
  throw ConfigError(unknown_name("model.zoo", config.zoo, zoo_names()));
}

}  // namespace

std::vector<LayerConfig> zoo_layers(const ModelConfig& config, const SampleForm& form) {
  std::vector<LayerConfig> layers = layers_of(config, form);
  for (LayerConfig& layer : layers) layer.where = "zoo " + config.zoo;
  return layers;
}

std::vector<LayerConfig> zoo_layers(std::string_view name, const SampleForm& form) {
  ModelConfig config;
  config.zoo = name;
  return zoo_layers(config, form);
}

SampleForm zoo_form(std::string_view name) {
  if (name == "digits_cnn") return labelled({1, 8, 8}, 10);
  if (name == "lenet" || name == "cnn_32_64") return labelled({1, 28, 28}, 10);
  for (std::string_view small : {"resnet18_cifar", "resnet20", "resnet32", "resnet44", "resnet56"})
    if (name == small) return labelled({3, 32, 32}, 10);
  if (name == "unet") return {.shape = {3, 256, 256}, .label = {256, 256}, .classes = 2, .dense = true};
  if (name == "deepcam") return {.shape = {16, 768, 1152}, .label = {768, 1152}, .classes = 3, .dense = true};
  if (name == "cosmoflow") return {.shape = {4, 128, 128, 128}, .label = {4}};
  if (name == "frnn_lstm") return {.shape = {128, 14}, .label = {128}, .lengths = true, .stream = true};
  if (name == "inception_v3") return labelled({3, 299, 299}, 1000);
  if (name == "ranking") return {.shape = {26}, .vocabulary = 100000, .classes = 2};
  if (name == "charlstm" || name == "chargru" || name == "transformer")
    return {.shape = {64}, .vocabulary = 65, .label = {64}, .classes = 65};
  if (name == "wordlstm") return {.shape = {35}, .vocabulary = 10000, .label = {35}, .classes = 10000};
  if (name == "sequence_classifier") return {.shape = {29, 12}, .classes = 9, .lengths = true};
  if (name == "translation")
    return {.shape = {24}, .vocabulary = 64, .label = {24}, .classes = 64, .lengths = true, .target = 24};
  for (const std::string& known : zoo_names())
    if (name == known) return labelled({3, 224, 224}, 1000);
  throw ConfigError(unknown_name("model.zoo", name, zoo_names()));
}

SampleForm zoo_form(std::string_view name, const Shape& sample) {
  SampleForm form = zoo_form(name);
  const bool steps = form.shape.rank() == 2 && form.label.rank() > 0;
  form.shape = sample;
  if (steps) form.label = form.label.with_front(sample[0]);
  if (form.dense) form.label = sample.rank() > 1 ? sample.without_front() : sample;
  return form;
}

Graph build_zoo(std::string_view name, const SampleForm& form, const LossOptions& loss) {
  return build_layers(zoo_layers(name, form), form, loss);
}

}  // namespace echelon::inline model
