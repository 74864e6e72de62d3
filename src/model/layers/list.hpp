// Every layer that a config can name, and what each makes of a [[model.layers]] entry.
//
// Adding a layer: a file here with `LayerPtr make_<type>(const LayerConfig&)`, a line in ECHELON_LAYERS, its keys in
// config/keys.cpp, and a row in tests/support/layer_rows.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/schema.hpp"
#include "model/layer.hpp"

namespace echelon {

// clang-format off
#define ECHELON_LAYERS(X)                                                                          \
  X(conv) X(max_pool) X(avg_pool) X(global_avg_pool) X(dense) X(relu) X(tanh) X(sigmoid) X(gelu)   \
  X(batch_norm) X(layer_norm) X(lrn) X(dropout) X(flatten) X(add) X(concat)           \
  X(position) X(attention) X(sequence_pool) X(embedding) X(rnn) X(lstm) X(gru)
// clang-format on

#define X(type) LayerPtr make_##type(const LayerConfig& config);
ECHELON_LAYERS(X)
#undef X

std::vector<std::string> layer_types();
// Throws ConfigError (without file:line, which the caller adds) for an unknown type and for values that no input could
// fit.
LayerPtr make_layer(const LayerConfig& config);

}  // namespace echelon
