// SPDX-License-Identifier: Apache-2.0
// U-Net: convolutions and pools that halve the extents, then transposed convolutions that double them again, each
// joined with the output of its level on the way down. A 1x1 convolution gives a plane for each class, or for each
// number of a label. Convolutions are 3x3, padded, without bias, and followed by batch norm and relu.
//
//   images    Ronneberger et al. 2015, padded and with batch norm as implementations have it: a level has two
//             convolutions of its width, and the way up halves channels before it joins. 31,037,763 parameters on
//             (3, 256, 256) and 2 classes; 7,763,041 for widths from 32 to 512 and one plane, as
//             github.com/mateuszbuda/brain-segmentation-pytorch
//   volumes   Cicek et al. 2016: the first convolution of a level on the way down has half its width, and transposed
//             convolutions keep their channels. 19,073,187 parameters on (3, 132, 132, 116) and 3 classes; the paper
//             counts 19,069,955, without the 2,336 scales of batch norm and the 896 biases of transposed convolutions
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

namespace {

class UNet : public Chain {
 public:
  UNet(std::vector<std::int64_t> widths, bool volumes) : widths_(std::move(widths)), volumes_(volumes) {}

  std::vector<LayerConfig> layers(std::int64_t planes) {
    std::vector<std::string> down;
    for (std::size_t level = 0; level < widths_.size(); ++level) {
      if (level > 0) add(max_pool(2));
      norm_relu(volumes_ ? std::max<std::int64_t>(widths_[level] / 2, 1) : widths_[level]);
      down.push_back(norm_relu(widths_[level]));
    }
    for (std::size_t level = widths_.size() - 1; level-- > 0;) {
      LayerConfig up = layer("conv_transpose");
      up.channels = widths_[level + (volumes_ ? 1 : 0)];
      up.kernel = up.stride = {2};
      const std::string larger = add(up);
      add(layer("concat"), {larger, down[level]});
      norm_relu(widths_[level]);
      norm_relu(widths_[level]);
    }
    add(conv(planes, 1, 0));
    return take();
  }

 private:
  std::string norm_relu(std::int64_t channels) {
    conv_norm(channels, 3, 1);
    return add(layer("relu"));
  }

  std::vector<std::int64_t> widths_;
  bool volumes_;
};

void require_places(const SampleForm& form, std::int64_t levels) {
  const Shape &input = form.shape, places = input.rank() > 1 ? input.without_front() : Shape{};
  const bool spatial = !form.tokens() && input.rank() >= 2 && input.rank() <= 4;
  const bool fits = form.label == places ||
                    (form.classes == 0 && form.label.rank() == input.rank() && form.label.without_front() == places);
  if (!spatial || !fits)
    throw ConfigError(fmt::format(
        "unet gives a class or numbers for every place of series, images or volumes (C, ..), but samples are {} and "
        "labels {}",
        input.text(), form.label.text()));
  const std::int64_t factor = std::int64_t{1} << (levels - 1);
  for (int axis = 1; axis < input.rank(); ++axis)
    if (input[axis] % factor != 0)
      throw ConfigError(fmt::format(
          "unet of {} levels halves every axis {} times, so that extents must be multiples of {}, but samples are {}; "
          "nearest valid: {}, or fewer model.widths",
          levels, levels - 1, factor, input.text(),
          input[axis] < factor
              ? fmt::format("{}", factor)
              : fmt::format("{} or {}", input[axis] / factor * factor, input[axis] / factor * factor + factor)));
}

}  // namespace

std::vector<LayerConfig> zoo_unet(const SampleForm& form, const ModelConfig& config) {
  const bool volumes = form.shape.rank() == 4;
  std::vector<std::int64_t> widths = config.widths;
  if (widths.empty()) {
    widths = {64, 128, 256, 512};
    if (!volumes) widths.push_back(1024);
  }
  require_places(form, static_cast<std::int64_t>(widths.size()));
  const bool one =
      config.loss == "bce" || config.loss == "hinge" || (form.classes == 0 && form.label.rank() < form.shape.rank());
  return UNet(std::move(widths), volumes).layers(one ? 1 : form.classes > 0 ? form.classes : form.label[0]);
}

}  // namespace echelon::inline model
