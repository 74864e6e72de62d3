// SPDX-License-Identifier: Apache-2.0
// Every layer that a config can name, made from an entry of [[model.layers]].
//
// To add a layer: a file here with `LayerPtr make_<type>(const LayerConfig&)`, a line in config/traits/layers.hpp, new
// keys in config/keys/layers.cpp, and a row in tests/support/layer_rows.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/schema.hpp"
#include "config/traits/layers.hpp"
#include "model/layer.hpp"

namespace echelon::inline model {

#define X(type, ...) LayerPtr make_##type(const LayerConfig& config);
ECHELON_LAYERS(X)
#undef X

std::vector<std::string> layer_types();  // in the order of config/traits/layers.hpp
// ConfigError (without file:line, which the caller adds) for an unknown type, with the nearest, and for values of keys
// that no input shape could fit.
LayerPtr make_layer(const LayerConfig& config);

}  // namespace echelon::inline model
