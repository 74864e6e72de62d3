// SPDX-License-Identifier: Apache-2.0
#include "config/augment_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/schema.hpp"

namespace echelon::inline config {

std::optional<Misfit> AugmentKeys::misfit() const {
  const std::pair<const char*, const std::vector<double>*> ranges[] = {{"crop_scale", &crop_scale},
                                                                       {"crop_ratio", &crop_ratio},
                                                                       {"erase_scale", &erase_scale},
                                                                       {"erase_ratio", &erase_ratio}};
  for (const auto& [key, range] : ranges) {
    if (range == &crop_scale && range->empty()) continue;
    if (range->size() != 2 || range->front() > range->back())
      return Misfit{key, fmt::format("data.augment.{} takes the least and the greatest value, e.g. [{}, {}]", key,
                                     range == &crop_ratio || range == &erase_ratio ? 0.75 : 0.08,
                                     range == &crop_ratio || range == &erase_ratio ? 1.33 : 1.0)};
  }
  return {};
}

std::optional<Misfit> DataConfig::image_misfit() const {
  if (const auto misfit = augment.misfit()) return Misfit{"augment." + misfit->key, misfit->why};
  if (augment.crops() && augment_crop_padding > 0)
    return Misfit{"augment.crop_scale",
                  "data.augment.crop_scale and data.augment_crop_padding are two kinds of random crops; keep one"};
  if (image_size.size() > 2)
    return Misfit{"image_size", fmt::format("data.image_size has {} numbers; give height and width, or one number for "
                                            "both",
                                            image_size.size())};
  if (image_size.empty() || evaluation_resize == 0) return {};
  const std::int64_t larger = std::max(image_size.front(), image_size.back());
  if (evaluation_resize < larger)
    return Misfit{"evaluation_resize", fmt::format("data.evaluation_resize = {} is less than the larger side of "
                                                   "data.image_size, which is its centre; nearest valid: {}",
                                                   evaluation_resize, larger)};
  return {};
}

}  // namespace echelon::inline config
