// SPDX-License-Identifier: Apache-2.0
// Functions that write the layers of zoo models.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/sample_form.hpp"
#include "config/schema.hpp"

namespace echelon::inline model::zoo {

LayerConfig layer(std::string type);
LayerConfig conv(std::int64_t channels, std::int64_t kernel, std::int64_t padding, std::int64_t stride = 1);
LayerConfig max_pool(std::int64_t kernel);
LayerConfig max_pool(std::int64_t kernel, std::int64_t stride, std::int64_t padding);
LayerConfig dense(std::int64_t units);
LayerConfig recurrent(std::string type, std::int64_t units);  // embedding, rnn, lstm, gru
LayerConfig dropout(double rate);

// ConfigError unless samples are images of at least `least` rows and columns: "lenet takes images of at least 4 x 4
// (it was designed for (1, 28, 28)), but samples are (1, 3, 28)".
void require_images(std::string_view model, const SampleForm& form, std::int64_t least, const Shape& made_for);

// A list of layers, each with a unique name, so that later layers can name it as an input.
class Chain {
 public:
  // Appends a layer that takes the output of the layer before it, or `inputs`; returns its name, e.g. "conv3".
  std::string add(LayerConfig layer, std::vector<std::string> inputs = {});
  // Convolution without bias (padded to keep the size at stride 1), then batch norm.
  std::string conv_norm(std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                        std::vector<std::string> inputs = {});
  std::string conv_relu(std::int64_t channels, std::int64_t kernel, std::vector<std::string> inputs = {});
  const std::string& last() const { return layers_.back().name; }
  std::vector<LayerConfig> take() { return std::move(layers_); }

 private:
  std::vector<LayerConfig> layers_;
  std::map<std::string, int> count_;  // by type
};

}  // namespace echelon::inline model::zoo
