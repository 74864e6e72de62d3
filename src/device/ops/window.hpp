// SPDX-License-Identifier: Apache-2.0
// Common to the ops with windows over images, volumes and series (conv, pool): lists of numbers for spatial axes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/dims.hpp"
#include "device/op_description.hpp"

namespace echelon::inline device {

inline constexpr int kMostAxes = 3;

// A number for each of up to three spatial axes: depth, height, width. A list has the last axes, (w), (h, w) or
// (d, h, w); the others have the number kUnused, with which a loop over three axes computes what fewer axes need.
template <std::int64_t kUnused>
struct PerAxis {
  std::int64_t d = kUnused, h = kUnused, w = kUnused;

  constexpr PerAxis() = default;
  constexpr PerAxis(std::initializer_list<std::int64_t> list) {
    const auto* value = list.begin();
    if (list.size() > 2) d = *value++;
    if (list.size() > 1) h = *value++;
    if (list.size() > 0) w = *value++;
  }
  // Axis 0 is depth, 1 height, 2 width.
  constexpr std::int64_t& operator[](int axis) { return axis == 0 ? d : axis == 1 ? h : w; }
  constexpr std::int64_t operator[](int axis) const { return axis == 0 ? d : axis == 1 ? h : w; }
  friend bool operator==(const PerAxis&, const PerAxis&) = default;
};
using AxisSizes = PerAxis<1>;     // kernels, strides, dilations
using AxisPaddings = PerAxis<0>;  // at both ends of an axis

// The extents of an image or volume, whose rank is the length of the list.
struct SpatialExtents : PerAxis<1> {
  int rank = 2;

  constexpr SpatialExtents() = default;
  constexpr SpatialExtents(std::initializer_list<std::int64_t> list)
      : PerAxis(list), rank(static_cast<int>(list.size())) {}
  // The first axis that exists, which spatial parallelism cuts.
  constexpr int first_axis() const { return kMostAxes - rank; }
  constexpr std::int64_t cells() const { return d * h * w; }
  friend bool operator==(const SpatialExtents&, const SpatialExtents&) = default;
};

// (N, C, extents) of an activation, or (K, C, kernel) of weights for `extents.rank` axes.
inline Shape with_axes(std::int64_t a, std::int64_t b, const PerAxis<1>& extents, int rank) {
  std::vector<std::int64_t> all = {a, b};
  for (int axis = kMostAxes - rank; axis < kMostAxes; ++axis) all.push_back(extents[axis]);
  return Shape(all);
}

// "3x2" for two axes, "3x2x2" for three.
template <std::int64_t kUnused>
std::string by(const PerAxis<kUnused>& values, int rank) {
  std::string text;
  for (int axis = kMostAxes - rank; axis < kMostAxes; ++axis)
    text += (text.empty() ? "" : "x") + std::to_string(values[axis]);
  return text;
}

// Adds "stride 2" or "pad 1x2"; nothing if all values are `usual`, the value of unused axes.
template <std::int64_t kUsual>
void axes_word(OpDescription& op, std::string_view name, const PerAxis<kUsual>& values, int rank) {
  if (values == PerAxis<kUsual>()) return;
  bool equal = true;
  for (int axis = kMostAxes - rank; axis < kMostAxes; ++axis) equal = equal && values[axis] == values.w;
  if (equal)
    op.word(name, values.w);
  else
    op.word(name, by(values, rank));
}

// The numbers of windows along each axis; 0 where none fits.
inline SpatialExtents windows_over(const SpatialExtents& in, const AxisSizes& kernel, const AxisSizes& stride,
                                   const AxisPaddings& pad, const AxisSizes& dilation = {}) {
  SpatialExtents out = in;
  for (int axis = 0; axis < kMostAxes; ++axis)
    out[axis] = window_extent(in[axis], kernel[axis], stride[axis], pad[axis], dilation[axis]);
  return out;
}

inline void require_windows(OpDescription& op, const SpatialExtents& in, const AxisSizes& kernel,
                            const AxisSizes& stride, const AxisPaddings& pad, const SpatialExtents& out) {
  op.require(in.rank >= 1 && in.rank <= kMostAxes, "{} spatial axes are not 1 to 3", {std::int64_t{in.rank}});
  for (int axis = 0; axis < kMostAxes; ++axis) {
    op.require(pad[axis] >= 0, "a padding of {} is negative", {pad[axis]});
    op.require(stride[axis] >= 1, "a stride of {} is below 1", {stride[axis]});
    op.require(axis >= in.first_axis() || (in[axis] == 1 && kernel[axis] == 1 && stride[axis] == 1 && pad[axis] == 0),
               "an axis that the images do not have has a window of {}", {kernel[axis]});
  }
  op.require(out.d >= 1 && out.h >= 1 && out.w >= 1, "a window of {} does not fit into an image of {}",
             {by(kernel, in.rank), by(in, in.rank)});
}

}  // namespace echelon::inline device
