// SPDX-License-Identifier: Apache-2.0
// Keys and output extents of convolution and pooling over 1 to 3 spatial axes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/shape.hpp"
#include "config/layer_config.hpp"
#include "device/ops/window.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

// The value of a key: one number for all spatial axes, or one for each, in the order of the axes. Both it and `usual`,
// which stands for a key that is not given, depend on the number of axes only through the length of the list.
class AxesKey {
 public:
  // ConfigError with the key's name for more than three numbers and for a number below `least`.
  AxesKey(std::string_view key, const std::vector<std::int64_t>& values, std::int64_t usual, std::int64_t least);

  // The number for spatial axis `axis` of `rank`, counted from 0. ConfigError if the list has another length than
  // `rank`, with the one that fits.
  std::int64_t at(int axis, int rank) const;
  // For the first spatial axis, whatever their number.
  std::int64_t first() const { return values_.front(); }
  bool operator==(const AxesKey& other) const { return values_ == other.values_; }
  // "3x3x3" for three axes.
  std::string text(int rank) const;
  // "3" if all axes have the same number.
  std::string short_text(int rank) const;
  bool is(std::int64_t value) const;  // on all axes

  template <std::int64_t kUnused>
  PerAxis<kUnused> on(int rank) const {
    PerAxis<kUnused> values;
    for (int axis = 0; axis < rank; ++axis) values[kMostAxes - rank + axis] = at(axis, rank);
    return values;
  }

 private:
  std::string_view key_;
  std::vector<std::int64_t> values_;
};

// The key `kernel`, which must be given and be at least 1.
AxesKey required_kernel(const std::vector<std::int64_t>& values);

// The number of spatial axes of (C, W), (C, H, W) or (C, D, H, W). ConfigError for another shape; `what` names the
// layer.
int spatial_axes(const Shape& input, std::string_view what);
// The spatial extents of (C, ..) or, with `front` = 2, of (N, C, ..).
SpatialExtents extents_of(const Shape& shape, int front = 1);

struct Window {
  AxesKey kernel, stride, padding, dilation;
};
// The window of a convolution or a transposed one; `kind` names the layer. ConfigError unless it has at least one
// channel and one group.
Window conv_window(const LayerConfig& config, std::string_view kind);
// ConfigError unless the groups divide both numbers of channels.
void require_groups(std::int64_t groups, std::int64_t in, std::int64_t out);
// (channels, windows along each axis) for (C, spatial axes): along each axis P = (H + 2 padding - dilation (R - 1) -
// 1) / stride + 1 rounded down. ConfigError with the extent and the nearest one that fits if the window exceeds the
// padded input.
Shape slide(const Window& window, const Shape& input, std::int64_t channels);
// The rows along the first spatial axis that the window reads (LayerSplit::row_window).
RowWindow rows_of(const Window& window);
// "3x3 stride 2 pad 1"; the stride `usual_stride`, no padding and no dilation are left out.
std::string window_text(const Window& window, const AxesKey& usual_stride, int rank);

}  // namespace echelon::inline model
