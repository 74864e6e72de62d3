// Every layer that a config can name, and what each makes of a [[model.layers]] entry.
//
// Adding a layer: a file here with `LayerPtr make_<type>(const LayerConfig&)`, a line in ECHELON_LAYERS with the keys
// that it takes, and a row in tests/contract/test_layers.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/schema.hpp"
#include "model/layer.hpp"

namespace echelon {

// X(type, "keys beside type, name and inputs")
#define ECHELON_LAYERS(X)                                        \
  X(conv, "channels kernel stride padding dilation groups bias") \
  X(max_pool, "kernel stride padding")                           \
  X(avg_pool, "kernel stride padding count_padding")             \
  X(dense, "units bias")                                         \
  X(relu, "")                                                    \
  X(tanh, "")                                                    \
  X(sigmoid, "")                                                 \
  X(batch_norm, "epsilon momentum")                              \
  X(flatten, "")                                                 \
  X(add, "")

#define X(type, keys) LayerPtr make_##type(const LayerConfig& config);
ECHELON_LAYERS(X)
#undef X

std::vector<std::string> layer_types();
// Throws ConfigError (without file:line, which the caller adds) for an unknown type, a key that the type does not use,
// and values that no input could fit.
LayerPtr make_layer(const LayerConfig& config);

}  // namespace echelon
