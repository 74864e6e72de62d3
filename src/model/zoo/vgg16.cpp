// SPDX-License-Identifier: Apache-2.0
// VGG-16, configuration D of Simonyan, Zisserman 2014: 138,357,544 parameters on (3, 224, 224) and 1000 classes.
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

std::vector<LayerConfig> zoo_vgg16(const SampleForm& form) {
  require_images("vgg16", form, 32, {3, 224, 224});
  struct Stage {
    std::int64_t channels;
    int convolutions;
  };
  Chain net;
  for (const Stage& stage : {Stage{64, 2}, Stage{128, 2}, Stage{256, 3}, Stage{512, 3}, Stage{512, 3}}) {
    for (int i = 0; i < stage.convolutions; ++i) net.conv_relu(stage.channels, 3);
    net.add(max_pool(2));
  }
  net.add(layer("flatten"));  // (512, 7, 7)
  for (int i = 0; i < 2; ++i) {
    net.add(dense(4096));
    net.add(layer("relu"));
    net.add(dropout(0.5));
  }
  net.add(dense(form.classes));
  return net.take();
}

}  // namespace echelon::inline model
