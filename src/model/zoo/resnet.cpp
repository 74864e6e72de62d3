// SPDX-License-Identifier: Apache-2.0
// Residual networks (He et al. 2015) with batch norm, and a 1x1 projection on the shortcut where the shape changes.
//
//   resnet20  272,474 parameters on (3, 32, 32) and 10 classes: three stages of three basic blocks; the paper's pads
//             the shortcut with zeros instead of projecting (0.27 M either way). resnet32, resnet44 and resnet56 have
//             five, seven and nine blocks a stage
//   resnet18_cifar  11,173,962 parameters on (3, 32, 32) and 10 classes: resnet18 with a 3x3 convolution of stride 1 in
//             place of the 7x7 one and of the pool, as in the recipes for CIFAR (github.com/kuangliu/pytorch-cifar)
//   resnet18  11,689,512, resnet50 25,557,032 on (3, 224, 224) and 1000 classes, as torchvision builds them: the stride
//             of a bottleneck is in its 3x3 convolution, the paper's in its first
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

namespace {

struct Stage {
  std::int64_t channels;
  int blocks;
  std::int64_t stride;  // stride of the first block
};

constexpr Stage kStages18[] = {{64, 2, 1}, {128, 2, 2}, {256, 2, 2}, {512, 2, 2}};

class ResNet : public Chain {
 public:
  explicit ResNet(bool bottleneck) : bottleneck_(bottleneck) {}

  // Convolution, batch norm, relu, followed by the blocks.
  void stem(std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
    conv_norm(channels, kernel, stride);
    add(layer("relu"));
    channels_ = channels;
  }

  void stage(const Stage& stage) {
    for (int i = 0; i < stage.blocks; ++i) block(stage.channels, i == 0 ? stage.stride : 1);
  }

  std::vector<LayerConfig> head(std::int64_t classes) {
    add(layer("global_avg_pool"));
    add(layer("flatten"));
    add(dense(classes));
    return take();
  }

 private:
  void block(std::int64_t channels, std::int64_t stride) {
    const std::string from = last();
    const bool same = stride == 1 && channels == channels_;
    const std::string shortcut = same ? from : conv_norm(channels, 1, stride, {from});
    std::string body;
    if (bottleneck_) {
      conv_norm(channels / 4, 1, 1, {from});
      add(layer("relu"));
      conv_norm(channels / 4, 3, stride);
      add(layer("relu"));
      body = conv_norm(channels, 1, 1);
    } else {
      conv_norm(channels, 3, stride, {from});
      add(layer("relu"));
      body = conv_norm(channels, 3, 1);
    }
    add(layer("add"), {body, shortcut});
    add(layer("relu"));
    channels_ = channels;
  }

  bool bottleneck_;
  std::int64_t channels_ = 0;  // channels of the last value
};

// Returns a model for small images with 6 * blocks + 2 layers.
std::vector<LayerConfig> small_resnet(int blocks, const SampleForm& form) {
  require_images("resnet" + std::to_string(6 * blocks + 2), form, 1, {3, 32, 32});
  ResNet net(false);
  net.stem(16, 3, 1);
  for (const Stage& stage : {Stage{16, blocks, 1}, Stage{32, blocks, 2}, Stage{64, blocks, 2}}) net.stage(stage);
  return net.head(form.classes);
}

}  // namespace

std::vector<LayerConfig> zoo_resnet20(const SampleForm& form) { return small_resnet(3, form); }
std::vector<LayerConfig> zoo_resnet32(const SampleForm& form) { return small_resnet(5, form); }
std::vector<LayerConfig> zoo_resnet44(const SampleForm& form) { return small_resnet(7, form); }
std::vector<LayerConfig> zoo_resnet56(const SampleForm& form) { return small_resnet(9, form); }

std::vector<LayerConfig> zoo_resnet18(const SampleForm& form) {
  require_images("resnet18", form, 1, {3, 224, 224});
  ResNet net(false);
  net.stem(64, 7, 2);
  net.add(max_pool(3, 2, 1));  // (64, 56, 56)
  for (const Stage& stage : kStages18) net.stage(stage);
  return net.head(form.classes);
}

std::vector<LayerConfig> zoo_resnet18_cifar(const SampleForm& form) {
  require_images("resnet18_cifar", form, 1, {3, 32, 32});
  ResNet net(false);
  net.stem(64, 3, 1);
  for (const Stage& stage : kStages18) net.stage(stage);
  return net.head(form.classes);
}

std::vector<LayerConfig> zoo_resnet50(const SampleForm& form) {
  require_images("resnet50", form, 1, {3, 224, 224});
  ResNet net(true);
  net.stem(64, 7, 2);
  net.add(max_pool(3, 2, 1));  // (64, 56, 56)
  for (const Stage& stage : {Stage{256, 3, 1}, Stage{512, 4, 2}, Stage{1024, 6, 2}, Stage{2048, 3, 2}})
    net.stage(stage);
  return net.head(form.classes);
}

}  // namespace echelon::inline model
