// SPDX-License-Identifier: Apache-2.0
// LeNet-5 (LeCun et al.: Gradient-based learning applied to document recognition, 1998), as it is trained today: every
// filter of the second convolution sees all six channels, pools average without weights, and the outputs are those of a
// softmax; 61,706 parameters on (1, 28, 28), which the first convolution pads to (1, 32, 32).
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

std::vector<LayerConfig> zoo_lenet(const SampleForm& form) {
  require_images("lenet", form, 12, {1, 28, 28});
  LayerConfig pool = layer("avg_pool");
  pool.kernel = {2};
  return {
      conv(6, 5, 2),    layer("tanh"), pool,  // (6, 14, 14)
      conv(16, 5, 0),   layer("tanh"), pool,  // (16, 5, 5)
      layer("flatten"), dense(120),    layer("tanh"), dense(84), layer("tanh"), dense(form.classes),
  };
}

}  // namespace echelon::inline model
