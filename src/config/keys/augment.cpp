// SPDX-License-Identifier: Apache-2.0
// [data.augment]
#include "config/keys/section.hpp"

namespace echelon::inline config::keys {

void add_augment(Table& all) {
  Section<Config, AugmentKeys> augment(all, "data.augment",
                                       [](Config& config) -> AugmentKeys& { return config.data.augment; });
  augment.younger();
  augment.key("crop_scale", &AugmentKeys::crop_scale, range(1e-6, 1),
              "training images: a random crop with this share of the area (least, greatest), resized to the size that "
              "the model sees; empty: off");
  augment.key("crop_ratio", &AugmentKeys::crop_ratio, range(0.01, 100),
              "crop_scale: width / height of the crop (least, greatest)");
  augment.key("brightness", &AugmentKeys::brightness, range(0, 10),
              "8-bit images: values times a factor of [max(0, 1 - x), 1 + x]; 0: off");
  augment.key("contrast", &AugmentKeys::contrast, range(0, 10), "the same for the distance from the mean grey");
  augment.key("saturation", &AugmentKeys::saturation, range(0, 10),
              "the same for the distance from the grey of each pixel; red, green and blue only");
  augment.key("hue", &AugmentKeys::hue, range(0, 0.5), "hues are turned by [-x, x]; red, green and blue only; 0: off");
  augment.key("flip_rows", &AugmentKeys::flip_rows, {}, "upside down with probability 1/2");
  augment.key("flip_depth", &AugmentKeys::flip_depth, {}, "volumes: slices in reverse with probability 1/2");
  augment.key("rotate", &AugmentKeys::rotate, words({"none", "plane", "cube"}),
              "plane: quarter turns of rows and columns; cube: one of the 24 rotations of a volume");
  augment.key("erase", &AugmentKeys::erase, range(0, 1),
              "probability that a random rectangle becomes 0, the mean of its channel");
  augment.key("erase_scale", &AugmentKeys::erase_scale, range(1e-6, 1),
              "erase: its share of the area (least, greatest)");
  augment.key("erase_ratio", &AugmentKeys::erase_ratio, range(0.01, 100),
              "erase: its height / width (least, greatest)");
  augment.key("cutout", &AugmentKeys::cutout, range(0, 65536),
              "side of a square, or cube, around a random place that becomes 0; 0: off");
  augment.key("mixup", &AugmentKeys::mixup, range(0, 1000),
              "samples become lambda x + (1 - lambda) other, lambda of the distribution Beta(alpha, alpha) with this "
              "alpha; 0: off");
  augment.key("cutmix", &AugmentKeys::cutmix, range(0, 1000),
              "a box with the share 1 - lambda of the sample is taken from another one; with mixup each half of the "
              "times; 0: off");
}

}  // namespace echelon::inline config::keys
