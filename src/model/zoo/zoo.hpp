// SPDX-License-Identifier: Apache-2.0
// Ready-made models, each a list of layers as a config would define them. To add one: a file here and a name
// in config/traits/zoo.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/sample_form.hpp"
#include "config/schema.hpp"
#include "config/traits/zoo.hpp"
#include "model/build.hpp"

namespace echelon::inline model {

#define X(model) std::vector<LayerConfig> zoo_##model(const SampleForm& form);
ECHELON_ZOO(X)
#undef X
#define X(model) std::vector<LayerConfig> zoo_##model(const SampleForm& form, const ModelConfig& config);
ECHELON_ZOO_OF_WIDTHS(X)
#undef X

// Builds the named model for samples of this form, with its loss. ConfigError for an unknown name, with the nearest
// known one, and for samples that the model cannot take, with the form that it takes.
Graph build_zoo(std::string_view name, const SampleForm& form, const LossOptions& loss = {});

// The form of the samples for which a model was published, used if no data set is given.
SampleForm zoo_form(std::string_view name);
// The same for samples of another shape, whose labels follow it where they have a class for every place.
SampleForm zoo_form(std::string_view name, const Shape& sample);
// Returns the layers of model.zoo without the loss; their `where` is "zoo <name>".
std::vector<LayerConfig> zoo_layers(const ModelConfig& config, const SampleForm& form);
// The same with the model's own widths.
std::vector<LayerConfig> zoo_layers(std::string_view name, const SampleForm& form);

}  // namespace echelon::inline model
