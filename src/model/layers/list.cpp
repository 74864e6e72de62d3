// SPDX-License-Identifier: Apache-2.0
#include "model/layers/list.hpp"

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon::inline model {

std::vector<std::string> layer_types() { return names_in(kLayers); }

LayerPtr make_layer(const LayerConfig& config) {
#define X(kind, ...) \
  if (config.type == #kind) return make_##kind(config);
  ECHELON_LAYERS(X)
#undef X
  throw ConfigError(unknown_name("layer type", config.type, layer_types()));
}

}  // namespace echelon::inline model
