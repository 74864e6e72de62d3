// SPDX-License-Identifier: Apache-2.0
// A small network that is common in comparisons: two 3x3 convolutions of 32 and 64 channels, each with ReLU and a 2x2
// max pool, then dense 128 and dense over the classes; 421,642 parameters on (1, 28, 28).
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

std::vector<LayerConfig> zoo_cnn_32_64(const SampleForm& form) {
  require_images("cnn_32_64", form, 4, {1, 28, 28});
  return {
      conv(32, 3, 1),   layer("relu"),
      max_pool(2),  // (32, 14, 14)
      conv(64, 3, 1),   layer("relu"),
      max_pool(2),  // (64, 7, 7)
      layer("flatten"), dense(128),    layer("relu"), dense(form.classes),
  };
}

}  // namespace echelon::inline model
