// SPDX-License-Identifier: Apache-2.0
#include "model/zoo/parts.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace echelon::inline model::zoo {

LayerConfig layer(std::string type) {
  LayerConfig config;
  config.type = std::move(type);
  return config;
}

LayerConfig conv(std::int64_t channels, std::int64_t kernel, std::int64_t padding, std::int64_t stride) {
  LayerConfig config = layer("conv");
  config.channels = channels;
  config.kernel = {kernel};
  config.padding = {padding};
  if (stride != 1) config.stride = {stride};
  return config;
}

LayerConfig max_pool(std::int64_t kernel) {
  LayerConfig config = layer("max_pool");
  config.kernel = {kernel};
  return config;
}

LayerConfig max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  LayerConfig config = max_pool(kernel);
  config.stride = {stride};
  config.padding = {padding};
  return config;
}

LayerConfig dense(std::int64_t units) {
  LayerConfig config = layer("dense");
  config.units = units;
  return config;
}

LayerConfig recurrent(std::string type, std::int64_t units) {
  LayerConfig config = layer(std::move(type));
  config.units = units;
  return config;
}

LayerConfig dropout(double rate) {
  LayerConfig config = layer("dropout");
  config.rate = rate;
  return config;
}

void require_images(std::string_view model, const SampleForm& form, std::int64_t least, const Shape& made_for) {
  const Shape& input = form.shape;
  if (!form.tokens() && input.rank() == 3 && input[1] >= least && input[2] >= least) return;
  throw ConfigError(fmt::format("{} takes images of at least {} x {} (it was designed for {}), but samples are {}",
                                model, least, least, made_for.text(), input.text()));
}

std::string Chain::add(LayerConfig layer, std::vector<std::string> inputs) {
  layer.name = layer.type + std::to_string(++count_[layer.type]);
  layer.inputs = std::move(inputs);
  layers_.push_back(std::move(layer));
  return last();
}

std::string Chain::conv_norm(std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                             std::vector<std::string> inputs) {
  LayerConfig config = conv(channels, kernel, kernel / 2, stride);
  config.bias = false;
  add(std::move(config), std::move(inputs));
  return add(layer("batch_norm"));
}

std::string Chain::conv_relu(std::int64_t channels, std::int64_t kernel, std::vector<std::string> inputs) {
  add(conv(channels, kernel, kernel / 2), std::move(inputs));
  return add(layer("relu"));
}

}  // namespace echelon::inline model::zoo
