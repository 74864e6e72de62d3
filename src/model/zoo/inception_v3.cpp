// SPDX-License-Identifier: Apache-2.0
// Inception-v3 (Szegedy et al. 2015) without its side branch: 23,834,568 parameters on (3, 299, 299) and 1000 classes,
// layer for layer torchvision's inception_v3 with aux_logits = False: batch norm with epsilon 1e-3 behind every
// convolution, average pools that count padding.
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

namespace {

struct Window {
  std::int64_t rows, columns;
};

class Inception : public Chain {
 public:
  // Convolution without bias, batch norm, relu; `same`: padded to keep the size at stride 1.
  std::string unit(std::int64_t channels, Window window, bool same = true, std::int64_t stride = 1,
                   std::vector<std::string> inputs = {}) {
    LayerConfig config = layer("conv"), norm = layer("batch_norm");
    config.channels = channels;
    config.kernel = {window.rows, window.columns};
    if (same) config.padding = {window.rows / 2, window.columns / 2};
    if (stride != 1) config.stride = {stride};
    config.bias = false;
    norm.epsilon = 1e-3;
    add(std::move(config), std::move(inputs));
    add(std::move(norm));
    return add(layer("relu"));
  }
  std::string one(std::int64_t channels, const std::string& from) { return unit(channels, {1, 1}, true, 1, {from}); }

  // Average over 3x3, then 1x1.
  std::string pooled(std::int64_t channels, const std::string& from) {
    LayerConfig pool = layer("avg_pool");
    pool.kernel = {3}, pool.stride = {1}, pool.padding = {1}, pool.count_padding = true;
    return one(channels, add(std::move(pool), {from}));
  }
  void join(std::vector<std::string> branches) { add(layer("concat"), std::move(branches)); }

  // The modules of the paper's figures 5, 6 and 7, and those between that halve the image.
  void module_a(std::int64_t pool_channels) {
    const std::string from = last(), single = one(64, from);
    one(48, from);
    const std::string five = unit(64, {5, 5});
    one(64, from);
    unit(96, {3, 3});
    const std::string threes = unit(96, {3, 3});
    join({single, five, threes, pooled(pool_channels, from)});
  }

  void module_b() {
    const std::string from = last(), three = unit(384, {3, 3}, false, 2, {from});
    one(64, from);
    unit(96, {3, 3});
    const std::string threes = unit(96, {3, 3}, false, 2);
    join({three, threes, add(max_pool(3, 2, 0), {from})});
  }

  void module_c(std::int64_t c) {
    const std::string from = last(), single = one(192, from);
    one(c, from);
    unit(c, {1, 7});
    const std::string seven = unit(192, {7, 1});
    one(c, from);
    unit(c, {7, 1});
    unit(c, {1, 7});
    unit(c, {7, 1});
    const std::string sevens = unit(192, {1, 7});
    join({single, seven, sevens, pooled(192, from)});
  }

  void module_d() {
    const std::string from = last();
    one(192, from);
    const std::string three = unit(320, {3, 3}, false, 2);
    one(192, from);
    unit(192, {1, 7});
    unit(192, {7, 1});
    const std::string seven = unit(192, {3, 3}, false, 2);
    join({three, seven, add(max_pool(3, 2, 0), {from})});
  }

  void module_e() {
    const std::string from = last(), single = one(320, from);
    const std::string left = one(384, from);
    const std::string left_a = unit(384, {1, 3}, true, 1, {left}), left_b = unit(384, {3, 1}, true, 1, {left});
    one(448, from);
    const std::string right = unit(384, {3, 3});
    const std::string right_a = unit(384, {1, 3}, true, 1, {right}), right_b = unit(384, {3, 1}, true, 1, {right});
    join({single, left_a, left_b, right_a, right_b, pooled(192, from)});
  }
};

}  // namespace

std::vector<LayerConfig> zoo_inception_v3(const SampleForm& form) {
  require_images("inception_v3", form, 75, {3, 299, 299});
  Inception net;
  net.unit(32, {3, 3}, false, 2);
  net.unit(32, {3, 3}, false);
  net.unit(64, {3, 3});
  net.add(max_pool(3, 2, 0));  // (64, 73, 73)
  net.unit(80, {1, 1});
  net.unit(192, {3, 3}, false);
  net.add(max_pool(3, 2, 0));  // (192, 35, 35)
  for (std::int64_t pool_channels : {32, 64, 64}) net.module_a(pool_channels);
  net.module_b();  // (768, 17, 17)
  for (std::int64_t c : {128, 160, 160, 192}) net.module_c(c);
  net.module_d();  // (1280, 8, 8)
  net.module_e();
  net.module_e();
  net.add(layer("global_avg_pool"));
  net.add(layer("flatten"));
  net.add(dropout(0.5));
  net.add(dense(form.classes));
  return net.take();
}

}  // namespace echelon::inline model
