#include "model/layers/list.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon {
namespace {

// Keys whose value is not the default. A key written with its default value is harmless everywhere.
std::vector<std::string> keys_set(const LayerConfig& config) {
  const LayerConfig plain;
  std::vector<std::string> keys;
  const auto note = [&](bool set, const char* key) {
    if (set) keys.emplace_back(key);
  };
  note(config.channels != plain.channels, "channels");
  note(config.units != plain.units, "units");
  note(!config.kernel.empty(), "kernel");
  note(!config.stride.empty(), "stride");
  note(!config.padding.empty(), "padding");
  note(!config.dilation.empty(), "dilation");
  note(config.groups != plain.groups, "groups");
  note(config.bias != plain.bias, "bias");
  note(config.count_padding != plain.count_padding, "count_padding");
  note(config.epsilon != plain.epsilon, "epsilon");
  note(config.momentum != plain.momentum, "momentum");
  return keys;
}

bool lists(std::string_view keys, std::string_view key) {
  return (" " + std::string(keys) + " ").find(" " + std::string(key) + " ") != std::string::npos;
}

void refuse_foreign_keys(const LayerConfig& config, std::string_view taken) {
  for (const std::string& key : keys_set(config))
    if (!lists(taken, key))
      throw ConfigError(fmt::format("does not use '{}'; it takes {}", key,
                                    taken.empty() ? "no keys beside name and inputs" : std::string(taken)));
}

}  // namespace

std::vector<std::string> layer_types() {
  return {
#define X(type, keys) #type,
      ECHELON_LAYERS(X)
#undef X
  };
}

LayerPtr make_layer(const LayerConfig& config) {
#define X(type_, keys)                 \
  if (config.type == #type_) {         \
    refuse_foreign_keys(config, keys); \
    return make_##type_(config);       \
  }
  ECHELON_LAYERS(X)
#undef X
  throw ConfigError(unknown_name("layer type", config.type, layer_types()));
}

}  // namespace echelon
