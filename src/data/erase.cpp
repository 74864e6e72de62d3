// SPDX-License-Identifier: Apache-2.0
#include "data/erase.hpp"

#include <algorithm>
#include <cmath>

namespace echelon::inline data {

Box erased_box(const AugmentKeys& keys, const HashRng& draws, const Planes& planes) {
  if (draws.uniform(0) >= keys.erase) return {};
  const double area = static_cast<double>(planes.height * planes.width);
  const double least = std::log(keys.erase_ratio.front()), most = std::log(keys.erase_ratio.back());
  for (std::uint64_t attempt = 1; attempt <= 10; ++attempt) {
    const HashRng draw = draws.at(attempt);
    const double part =
        keys.erase_scale.front() + (keys.erase_scale.back() - keys.erase_scale.front()) * draw.uniform(0);
    const double ratio = std::exp(least + (most - least) * draw.uniform(1));
    const auto high = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * part * ratio)));
    const auto wide = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * part / ratio)));
    if (high < 1 || wide < 1 || high >= planes.height || wide >= planes.width) continue;
    const auto top = static_cast<std::int64_t>(draw.below(2, static_cast<std::uint64_t>(planes.height - high + 1)));
    const auto left = static_cast<std::int64_t>(draw.below(3, static_cast<std::uint64_t>(planes.width - wide + 1)));
    return {.begin = {0, top, left}, .end = {1, top + high, left + wide}};
  }
  return {};
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
