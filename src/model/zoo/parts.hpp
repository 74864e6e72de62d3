// Layers as zoo models write them.
#pragma once

#include <cstdint>
#include <string>

#include "config/schema.hpp"

namespace echelon::zoo {

inline LayerConfig layer(std::string type) {
  LayerConfig config;
  config.type = std::move(type);
  return config;
}

inline LayerConfig conv(std::int64_t channels, std::int64_t kernel, std::int64_t padding) {
  LayerConfig config = layer("conv");
  config.channels = channels;
  config.kernel = {kernel};
  config.padding = {padding};
  return config;
}

inline LayerConfig max_pool(std::int64_t kernel) {
  LayerConfig config = layer("max_pool");
  config.kernel = {kernel};
  return config;
}

inline LayerConfig dense(std::int64_t units) {
  LayerConfig config = layer("dense");
  config.units = units;
  return config;
}

}  // namespace echelon::zoo
