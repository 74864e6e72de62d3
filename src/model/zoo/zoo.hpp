// Ready-made models, each a list of layers as a config would give them. Adding one: a file here and a line in
// ECHELON_ZOO.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/sample_form.hpp"
#include "config/schema.hpp"
#include "model/build.hpp"

namespace echelon {

// clang-format off
#define ECHELON_ZOO(X)                                                                                       \
  X(digits_cnn) X(lenet) X(alexnet) X(vgg16) X(googlenet) X(inception_v3)                                    \
  X(resnet18) X(resnet20) X(resnet32) X(resnet44) X(resnet56) X(resnet50)                                    \
  X(charlstm) X(chargru) X(wordlstm) X(sequence_classifier) X(translation)                             \
  X(transformer) X(ranking)
// clang-format on

#define X(model) std::vector<LayerConfig> zoo_##model(const SampleForm& form);
ECHELON_ZOO(X)
#undef X

// Builds the named model for samples of this form, with its loss. An unknown name is a ConfigError with the nearest
// known one; a form that the model cannot take, one that says what it takes.
Graph build_zoo(std::string_view name, const SampleForm& form, const LossOptions& loss = {});
std::vector<std::string> zoo_names();

// What a model was made for, where no data says it.
SampleForm zoo_form(std::string_view name);
// The layers alone; each one's `where` is "zoo <name>".
std::vector<LayerConfig> zoo_layers(std::string_view name, const SampleForm& form);

}  // namespace echelon
