// SPDX-License-Identifier: Apache-2.0
#include "data/foreign_axes.hpp"

namespace echelon::inline data {

std::string likely_axes(const Shape& shape, bool one_sample) {
  const std::string samples = one_sample ? "" : "N";
  const int axes = shape.rank() - (one_sample ? 0 : 1), first = shape.rank() - axes;
  const auto extent = [&](int axis) { return shape[first + axis]; };
  switch (axes) {
    case 1: return samples + "F";
    case 2:
      // An image is about as high as wide; steps are many and features few.
      if (extent(0) >= 4 * extent(1)) return samples + "TF";
      return extent(1) >= 4 * extent(0) ? samples + "CW" : samples + "HW";
    case 3:
      if (extent(0) > 4 && extent(0) == extent(1) && extent(1) == extent(2)) return samples + "DHW";
      if ((extent(0) == extent(1)) != (extent(1) == extent(2)))  // images are mostly square
        return samples + (extent(0) == extent(1) ? "HWC" : "CHW");
      return samples + (extent(2) < extent(0) ? "HWC" : "CHW");
    case 4: return samples + (extent(3) < extent(0) ? "DHWC" : "CDHW");
    default: return samples;
  }
}

}  // namespace echelon::inline data
