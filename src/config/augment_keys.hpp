// SPDX-License-Identifier: Apache-2.0
// [data.augment]: how training samples are changed after loading (data/augment.hpp, data/mix.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/strategies/keys.hpp"

namespace echelon::inline config {

enum class Rotate : std::uint8_t { none, plane, cube };

struct AugmentKeys {
  std::vector<double> crop_scale{};  // share of the image's area, least and greatest; empty: no such crop
  std::vector<double> crop_ratio = {0.75, 4.0 / 3};     // width / height of the crop, least and greatest
  double brightness = 0, contrast = 0, saturation = 0;  // factors are drawn from [max(0, 1 - x), 1 + x]; 0: off
  double hue = 0;                                       // shift of the hue in turns, drawn from [-x, x]; 0: off
  bool flip_rows = false;                               // mirrors upside down with probability 1/2
  bool flip_depth = false;                              // mirrors the slices of volumes with probability 1/2
  Rotate rotate = Rotate::none;  // "none" | "plane": quarter turns of (H, W) | "cube": all 24 of a cube
  double erase = 0;              // probability that a rectangle becomes 0
  std::vector<double> erase_scale = {0.02, 0.33};  // its share of the image's area
  std::vector<double> erase_ratio = {0.3, 3.3};    // its height / width
  std::int64_t cutout = 0;                         // side of a square, or cube, that becomes 0; 0: off
  double mixup = 0;                                // alpha of the share of another sample that is added; 0: off
  double cutmix = 0;  // alpha of the size of a box that is taken from another sample; 0: off

  bool operator==(const AugmentKeys&) const = default;
  bool jitters() const { return brightness > 0 || contrast > 0 || saturation > 0 || hue > 0; }
  bool turns() const { return flip_rows || flip_depth || rotate != Rotate::none; }
  bool crops() const { return !crop_scale.empty(); }
  bool erases() const { return erase > 0 || cutout > 0; }
  bool mixes() const { return mixup > 0 || cutmix > 0; }
  // Two of these keys that exclude each other, or a range that is none.
  std::optional<Misfit> misfit() const;
};

}  // namespace echelon::inline config
