// SPDX-License-Identifier: Apache-2.0
// AlexNet (Krizhevsky, Sutskever, Hinton 2012), with the two halves of its second, fourth and fifth convolution as
// groups: 60,965,224 parameters on (3, 224, 224) and 1000 classes. Order and constants are those of Caffe's
// bvlc_alexnet: normalisation before the pool, alpha 1e-4 over 5 channels with k = 1; images of 224 are padded by 2
// because Caffe's are 227 wide.
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

namespace {

LayerConfig halves(std::int64_t channels, std::int64_t kernel) {
  LayerConfig config = conv(channels, kernel, kernel / 2);
  config.groups = 2;
  return config;
}

}  // namespace

std::vector<LayerConfig> zoo_alexnet(const SampleForm& form) {
  require_images("alexnet", form, 63, {3, 224, 224});
  return {
      conv(96, 11, 2, 4), layer("relu"), layer("lrn"),      max_pool(3, 2, 0),  // (96, 27, 27)
      halves(256, 5),     layer("relu"), layer("lrn"),      max_pool(3, 2, 0),  // (256, 13, 13)
      conv(384, 3, 1),    layer("relu"), halves(384, 3),    layer("relu"),
      halves(256, 3),     layer("relu"), max_pool(3, 2, 0),  // (256, 6, 6)
      layer("flatten"),   dense(4096),   layer("relu"),     dropout(0.5),
      dense(4096),        layer("relu"), dropout(0.5),      dense(form.classes),
  };
}

}  // namespace echelon::inline model
