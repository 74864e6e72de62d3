// SPDX-License-Identifier: Apache-2.0
#include "data/resize.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.hpp"

namespace echelon::inline data {
namespace {

// The two pixels between which a centre lies, and the weight of the second.
struct Between {
  std::int64_t first = 0, second = 0;
  double weight = 0;
};

// For `count` pixels from `begin` on of a line of `window` pixels that is resized to `full`.
std::vector<Between> between(std::int64_t window, std::int64_t full, std::int64_t begin, std::int64_t count) {
  std::vector<Between> all(static_cast<std::size_t>(count));
  const double step = static_cast<double>(window) / static_cast<double>(full);
  for (std::int64_t i = 0; i < count; ++i) {
    const double at = std::max(0.0, (static_cast<double>(begin + i) + 0.5) * step - 0.5);
    const std::int64_t first = std::min(static_cast<std::int64_t>(at), window - 1);
    all[static_cast<std::size_t>(i)] = {first, std::min(first + 1, window - 1), at - static_cast<double>(first)};
  }
  return all;
}

}  // namespace

ImageWindow random_window(const HashRng& draws, std::int64_t height, std::int64_t width, double least_scale,
                          double most_scale, double least_ratio, double most_ratio) {
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  for (std::uint64_t attempt = 0; attempt < 10; ++attempt) {
    const HashRng draw = draws.at(attempt);
    const double area = h * w * (least_scale + (most_scale - least_scale) * draw.uniform(0));
    const double ratio =
        std::exp(std::log(least_ratio) + (std::log(most_ratio) - std::log(least_ratio)) * draw.uniform(1));
    const auto wide = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * ratio)));
    const auto high = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area / ratio)));
    if (wide < 1 || wide > width || high < 1 || high > height) continue;
    return {.top = static_cast<std::int64_t>(draw.below(2, static_cast<std::uint64_t>(height - high + 1))),
            .left = static_cast<std::int64_t>(draw.below(3, static_cast<std::uint64_t>(width - wide + 1))),
            .height = high,
            .width = wide};
  }
  std::int64_t high = height, wide = width;
  if (w / h < least_ratio)
    high = std::clamp<std::int64_t>(std::llround(w / least_ratio), 1, height);
  else if (w / h > most_ratio)
    wide = std::clamp<std::int64_t>(std::llround(h * most_ratio), 1, width);
  return {.top = (height - high) / 2, .left = (width - wide) / 2, .height = high, .width = wide};
}

void resize(const void* src, const Shape& src_shape, const ImageWindow& window, const Resized& full, void* dst,
            const Shape& dst_shape, DType dtype) {
  const std::int64_t high = dst_shape[1], wide = dst_shape[2], width = src_shape[2];
  ECHELON_CHECK(full.top >= 0 && full.left >= 0 && full.top + high <= full.height && full.left + wide <= full.width,
                "the part {} x {} from ({}, {}) is outside of {} x {}", high, wide, full.top, full.left, full.height,
                full.width);
  const std::vector<Between> rows = between(window.height, full.height, full.top, high);
  const std::vector<Between> columns = between(window.width, full.width, full.left, wide);
  with_float(dtype, [&]<class T>(T) {
    T* to = static_cast<T*>(dst);
    for (std::int64_t c = 0; c < src_shape[0]; ++c) {
      const T* plane = static_cast<const T*>(src) + (c * src_shape[1] + window.top) * width + window.left;
      for (const Between& row : rows) {
        const T *above = plane + row.first * width, *below = plane + row.second * width;
        const T down = static_cast<T>(row.weight);
        for (const Between& column : columns) {
          const T right = static_cast<T>(column.weight);
          const T upper = above[column.first] * (1 - right) + above[column.second] * right;
          const T lower = below[column.first] * (1 - right) + below[column.second] * right;
          *to++ = upper * (1 - down) + lower * down;
        }
      }
    }
  });
}

void central_view(const void* src, const Shape& src_shape, const ImageView& view, void* dst, DType dtype) {
  const std::int64_t height = src_shape[1], width = src_shape[2], shorter = std::min(height, width);
  const auto scaled = [&](std::int64_t side) { return view.resize * side / shorter; };
  const Resized full{
      .height = scaled(height),
      .width = scaled(width),
      .top = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(scaled(height) - view.height) / 2)),
      .left = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(scaled(width) - view.width) / 2))};
  resize(src, src_shape, {.top = 0, .left = 0, .height = height, .width = width}, full, dst, view.shape_of(src_shape),
         dtype);
}

}  // namespace echelon::inline data
