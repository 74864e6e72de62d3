// SPDX-License-Identifier: Apache-2.0
#include "data/erase.hpp"

#include <algorithm>

#include "data/resize.hpp"

namespace echelon::inline data {

Box erased_box(const AugmentKeys& keys, const HashRng& draws, const Planes& planes) {
  if (draws.uniform(0) >= keys.erase) return {};
  const auto drawn = random_rectangle(draws.at(1), planes.height, planes.width,
                                      {.least_scale = keys.erase_scale.front(),
                                       .most_scale = keys.erase_scale.back(),
                                       .least_ratio = 1 / keys.erase_ratio.back(),  // the key is height / width
                                       .most_ratio = 1 / keys.erase_ratio.front()},
                                      true);
  if (!drawn) return {};
  return {.begin = {0, drawn->top, drawn->left}, .end = {1, drawn->top + drawn->height, drawn->left + drawn->width}};
}

Box cutout_box(const AugmentKeys& keys, const HashRng& draws, const Shape& shape) {
  const std::array<std::int64_t, 3> extents = planes_of(shape).extents();
  Box box{.begin = {0, 0, 0}, .end = {1, 1, 1}};
  for (std::size_t a = static_cast<std::size_t>(4 - shape.rank()); a < 3; ++a) {
    const auto centre = static_cast<std::int64_t>(draws.below(a, static_cast<std::uint64_t>(extents[a])));
    box.begin[a] = std::clamp<std::int64_t>(centre - keys.cutout / 2, 0, extents[a]);
    box.end[a] = std::clamp<std::int64_t>(centre - keys.cutout / 2 + keys.cutout, 0, extents[a]);
  }
  return box;
}

}  // namespace echelon::inline data
