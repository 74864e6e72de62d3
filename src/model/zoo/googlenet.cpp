// SPDX-License-Identifier: Apache-2.0
// GoogLeNet (Szegedy et al. 2014) without its two side branches: 6,998,552 parameters on (3, 224, 224) and 1000
// classes, as in Caffe's bvlc_googlenet, whose pools round up; here they are padded by one, which gives the same sizes.
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

namespace {

// Channels of the 1x1 branch, of the 3x3 and 5x5 branches with the 1x1 before each, and of the 1x1 behind the pool.
struct Inception {
  std::int64_t one, reduce3, three, reduce5, five, pool;
};

void inception(Chain& net, const Inception& c) {
  const std::string from = net.last();
  const std::string one = net.conv_relu(c.one, 1, {from});
  net.conv_relu(c.reduce3, 1, {from});
  const std::string three = net.conv_relu(c.three, 3);
  net.conv_relu(c.reduce5, 1, {from});
  const std::string five = net.conv_relu(c.five, 5);
  net.add(max_pool(3, 1, 1), {from});
  const std::string pool = net.conv_relu(c.pool, 1);
  net.add(layer("concat"), {one, three, five, pool});
}

}  // namespace

std::vector<LayerConfig> zoo_googlenet(const SampleForm& form) {
  require_images("googlenet", form, 1, {3, 224, 224});
  Chain net;
  net.add(conv(64, 7, 3, 2));
  net.add(layer("relu"));
  net.add(max_pool(3, 2, 1));  // (64, 56, 56)
  net.add(layer("lrn"));
  net.conv_relu(64, 1);
  net.conv_relu(192, 3);
  net.add(layer("lrn"));
  net.add(max_pool(3, 2, 1));  // (192, 28, 28)
  inception(net, {64, 96, 128, 16, 32, 32});
  inception(net, {128, 128, 192, 32, 96, 64});
  net.add(max_pool(3, 2, 1));  // (480, 14, 14)
  inception(net, {192, 96, 208, 16, 48, 64});
  inception(net, {160, 112, 224, 24, 64, 64});
  inception(net, {128, 128, 256, 24, 64, 64});
  inception(net, {112, 144, 288, 32, 64, 64});
  inception(net, {256, 160, 320, 32, 128, 128});
  net.add(max_pool(3, 2, 1));  // (832, 7, 7)
  inception(net, {256, 160, 320, 32, 128, 128});
  inception(net, {384, 192, 384, 48, 128, 128});
  net.add(layer("global_avg_pool"));
  net.add(layer("flatten"));
  net.add(dropout(0.4));
  net.add(dense(form.classes));
  return net.take();
}

}  // namespace echelon::inline model
