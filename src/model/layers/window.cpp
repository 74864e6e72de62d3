// SPDX-License-Identifier: Apache-2.0
#include "model/layers/window.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/dims.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon::inline model {
namespace {

std::string_view axis_name(int axis, int rank) {
  constexpr std::string_view kNames[] = {"slices", "rows", "columns"};
  return kNames[kMostAxes - rank + axis];
}

std::int64_t windows_along(std::string_view axis, std::int64_t extent, std::int64_t size, std::int64_t stride,
                           std::int64_t pad, std::int64_t dilation) {
  const std::int64_t out = window_extent(extent, size, stride, pad, dilation);
  if (out > 0) return out;
  const std::int64_t reach = dilation * (size - 1) + 1;
  const std::int64_t padded = extent + 2 * pad;
  throw ConfigError(fmt::format(
      "the window covers {} {}, but the padded input has only {} ({} + 2 x {}); use a kernel of at most {} or a "
      "padding of at least {}",
      reach, axis, padded, extent, pad, (padded - 1) / dilation + 1, (reach - extent + 1) / 2));
}

}  // namespace

AxesKey::AxesKey(std::string_view key, const std::vector<std::int64_t>& values, std::int64_t usual, std::int64_t least)
    : key_(key), values_(values) {
  if (values_.empty()) values_ = {usual};
  if (values_.size() > kMostAxes)
    throw ConfigError(fmt::format("{} has {} numbers, but takes one number or one for each of at most {} spatial axes",
                                  key, values_.size(), kMostAxes));
  for (std::int64_t value : values_)
    if (value < least) throw ConfigError(fmt::format("{} = {} must be at least {}", key, value, least));
}

std::int64_t AxesKey::at(int axis, int rank) const {
  if (values_.size() == 1) return values_.front();
  if (values_.size() != static_cast<std::size_t>(rank))
    throw ConfigError(fmt::format("{} has {} numbers, but the layer's input has {}; give one number, or {}", key_,
                                  values_.size(), rank == 1 ? "1 spatial axis" : fmt::format("{} spatial axes", rank),
                                  rank));
  return values_[static_cast<std::size_t>(axis)];
}

std::string AxesKey::text(int rank) const {
  std::string text;
  for (int axis = 0; axis < rank; ++axis) text += (axis == 0 ? "" : "x") + std::to_string(at(axis, rank));
  return text;
}

std::string AxesKey::short_text(int rank) const {
  return is(values_.front()) ? fmt::format("{}", first()) : text(rank);
}

bool AxesKey::is(std::int64_t value) const {
  return std::all_of(values_.begin(), values_.end(), [&](std::int64_t own) { return own == value; });
}

AxesKey required_kernel(const std::vector<std::int64_t>& values) {
  if (values.empty())
    throw ConfigError("the layer needs the key kernel, one number or one for each spatial axis, e.g. kernel = 3");
  return {"kernel", values, 1, 1};
}

int spatial_axes(const Shape& input, std::string_view what) {
  if (input.rank() >= 2 && input.rank() <= 1 + kMostAxes) return input.rank() - 1;
  throw ConfigError(
      fmt::format("{} takes series (channels, steps), images (channels, rows, columns) or volumes (channels, slices, "
                  "rows, columns), but its input is {}",
                  what, input.text()));
}

SpatialExtents extents_of(const Shape& shape, int front) {
  SpatialExtents extents;
  extents.rank = shape.rank() - front;
  for (int axis = 0; axis < extents.rank; ++axis) extents[extents.first_axis() + axis] = shape[front + axis];
  return extents;
}

Window conv_window(const LayerConfig& config, std::string_view kind) {
  Window window{.kernel = required_kernel(config.kernel),
                .stride = {"stride", config.stride, 1, 1},
                .padding = {"padding", config.padding, 0, 0},
                .dilation = {"dilation", config.dilation, 1, 1}};
  if (config.channels < 1)
    throw ConfigError(
        fmt::format("a {} layer needs the key channels, the number of output channels, at least 1", kind));
  if (config.groups < 1) throw ConfigError(fmt::format("groups = {} must be at least 1", config.groups));
  return window;
}

void require_groups(std::int64_t groups, std::int64_t in, std::int64_t out) {
  if (in % groups != 0 || out % groups != 0)
    throw ConfigError(fmt::format("groups = {} must divide the {} input and the {} output channels", groups, in, out));
}

Shape slide(const Window& w, const Shape& input, std::int64_t channels) {
  const int rank = input.rank() - 1;
  std::vector<std::int64_t> extents = {channels};
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t size = w.kernel.at(axis, rank);  // the first key that an error names
    extents.push_back(windows_along(axis_name(axis, rank), input[1 + axis], size, w.stride.at(axis, rank),
                                    w.padding.at(axis, rank), w.dilation.at(axis, rank)));
  }
  return Shape(extents);
}

RowWindow rows_of(const Window& w) {
  return {.reach = w.dilation.first() * (w.kernel.first() - 1) + 1,
          .stride = w.stride.first(),
          .padding = w.padding.first()};
}

std::string window_text(const Window& w, const AxesKey& usual_stride, int rank) {
  std::string text = w.kernel.text(rank);
  if (w.stride.text(rank) != usual_stride.text(rank)) text += " stride " + w.stride.short_text(rank);
  if (!w.padding.is(0)) text += " pad " + w.padding.short_text(rank);
  if (!w.dilation.is(1)) text += " dilation " + w.dilation.short_text(rank);
  return text;
}

}  // namespace echelon::inline model
