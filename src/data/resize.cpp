// SPDX-License-Identifier: Apache-2.0
#include "data/resize.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.hpp"

namespace echelon::inline data {
namespace {

// A line of pixels that is resized: `count` pixels from `first` on of `full`, of a window [begin, begin + extent) of
// the source, whose pixels [low, high) may be used.
struct Line {
  double begin = 0, extent = 0;
  std::int64_t full = 0, first = 0, count = 0, low = 0, high = 0;
};

// The pixels of the source from which each pixel is made, with their weights.
template <class T>
struct Taps {
  struct Tap {
    std::int64_t first = 0, count = 0;
    std::size_t weights = 0;  // index of the first weight
  };
  std::vector<Tap> taps;
  std::vector<T> weights;

  explicit Taps(const Line& line) {
    const double step = line.extent / static_cast<double>(line.full), reach = std::max(1.0, step);
    std::vector<double> of_one;
    for (std::int64_t i = line.first; i < line.first + line.count; ++i) {
      const double centre = line.begin + (static_cast<double>(i) + 0.5) * step;
      const std::int64_t first =
          std::clamp(static_cast<std::int64_t>(std::floor(centre - reach + 0.5)), line.low, line.high - 1);
      const std::int64_t end =
          std::clamp(static_cast<std::int64_t>(std::floor(centre + reach + 0.5)), first + 1, line.high);
      of_one.clear();
      double sum = 0;
      for (std::int64_t x = first; x < end; ++x) {
        of_one.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(x) - centre + 0.5) / reach)));
        sum += of_one.back();
      }
      if (sum == 0) of_one.front() = sum = 1;  // a window narrower than a pixel of a shrunken image
      taps.push_back({first, end - first, weights.size()});
      for (const double weight : of_one) weights.push_back(static_cast<T>(weight / sum));
    }
  }
  std::int64_t first() const { return taps.front().first; }
  std::int64_t end() const { return taps.back().first + taps.back().count; }
};

// Lines of `inner` channels, side by side: rows first, which is one pass over whole lines, then columns. Row y of the
// source begins at `src` + y * row_elems. put(y, x, c, value) takes the results.
template <class T, class From, class Put>
void resize_lines(const From* src, std::int64_t row_elems, std::int64_t inner, const Taps<T>& rows,
                  const Taps<T>& columns, const Put& put) {
  const std::int64_t begin = columns.first(), elems = (columns.end() - begin) * inner;
  std::vector<T> line(static_cast<std::size_t>(elems));
  for (std::size_t y = 0; y < rows.taps.size(); ++y) {
    std::fill(line.begin(), line.end(), T{});
    const auto& row = rows.taps[y];
    for (std::int64_t k = 0; k < row.count; ++k) {
      const T weight = rows.weights[row.weights + static_cast<std::size_t>(k)];
      const From* __restrict from = src + (row.first + k) * row_elems + begin * inner;
      T* __restrict to = line.data();
      for (std::int64_t i = 0; i < elems; ++i) to[i] += weight * static_cast<T>(from[i]);
    }
    for (std::size_t x = 0; x < columns.taps.size(); ++x) {
      const auto& column = columns.taps[x];
      const T* weights = columns.weights.data() + column.weights;
      for (std::int64_t c = 0; c < inner; ++c) {
        const T* from = line.data() + (column.first - begin) * inner + c;
        T sum{};
        for (std::int64_t k = 0; k < column.count; ++k) sum += weights[k] * from[k * inner];
        put(static_cast<std::int64_t>(y), static_cast<std::int64_t>(x), c, sum);
      }
    }
  }
}

Line line_of(std::int64_t begin, std::int64_t extent, std::int64_t full, std::int64_t first, std::int64_t count) {
  return {.begin = static_cast<double>(begin),
          .extent = static_cast<double>(extent),
          .full = full,
          .first = first,
          .count = count,
          .low = begin,
          .high = begin + extent};
}

// The same line in an image that is `shrunk` times as small, of which `count` pixels from `at` on are there.
Line shrunken(const Line& line, std::int64_t shrunk, std::int64_t at, std::int64_t count) {
  Line small = line;
  const auto by = static_cast<double>(shrunk), from = static_cast<double>(at);
  small.begin = line.begin / by - from;
  small.extent = line.extent / by;
  small.low = std::clamp<std::int64_t>(line.low / shrunk - at, 0, count - 1);
  small.high = std::clamp<std::int64_t>((line.high + shrunk - 1) / shrunk - at, small.low + 1, count);
  return small;
}

}  // namespace

std::optional<ImageWindow> random_rectangle(const HashRng& draws, std::int64_t height, std::int64_t width,
                                            const RectangleRange& range, bool smaller) {
  const double whole = static_cast<double>(height) * static_cast<double>(width);
  const double least = std::log(range.least_ratio), most = std::log(range.most_ratio);
  for (std::uint64_t attempt = 0; attempt < 10; ++attempt) {
    const HashRng draw = draws.at(attempt);
    const double area = whole * (range.least_scale + (range.most_scale - range.least_scale) * draw.uniform(0));
    const double ratio = std::exp(least + (most - least) * draw.uniform(1));
    const auto wide = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * ratio)));
    const auto high = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area / ratio)));
    const std::int64_t less = smaller ? 1 : 0;
    if (wide < 1 || wide > width - less || high < 1 || high > height - less) continue;
    return ImageWindow{.top = static_cast<std::int64_t>(draw.below(2, static_cast<std::uint64_t>(height - high + 1))),
                       .left = static_cast<std::int64_t>(draw.below(3, static_cast<std::uint64_t>(width - wide + 1))),
                       .height = high,
                       .width = wide};
  }
  return std::nullopt;
}

ImageWindow random_window(const HashRng& draws, std::int64_t height, std::int64_t width, const RectangleRange& range) {
  if (const auto drawn = random_rectangle(draws, height, width, range, false)) return *drawn;
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  std::int64_t high = height, wide = width;
  if (w / h < range.least_ratio)
    high = std::clamp<std::int64_t>(std::llround(w / range.least_ratio), 1, height);
  else if (w / h > range.most_ratio)
    wide = std::clamp<std::int64_t>(std::llround(h * range.most_ratio), 1, width);
  return {.top = (height - high) / 2, .left = (width - wide) / 2, .height = high, .width = wide};
}

void resize(const void* src, const Shape& src_shape, const ImageWindow& window, const Resized& full, void* dst,
            const Shape& dst_shape, DType dtype) {
  const std::int64_t high = dst_shape[1], wide = dst_shape[2], width = src_shape[2];
  ECHELON_CHECK(full.top >= 0 && full.left >= 0 && full.top + high <= full.height && full.left + wide <= full.width,
                "the part {} x {} from ({}, {}) is outside of {} x {}", high, wide, full.top, full.left, full.height,
                full.width);
  with_float(dtype, [&]<class T>(T) {
    const Taps<T> rows(line_of(window.top, window.height, full.height, full.top, high));
    const Taps<T> columns(line_of(window.left, window.width, full.width, full.left, wide));
    T* to = static_cast<T*>(dst);
    for (std::int64_t c = 0; c < src_shape[0]; ++c, to += high * wide)
      resize_lines(static_cast<const T*>(src) + c * src_shape[1] * width, width, 1, rows, columns,
                   [&](std::int64_t y, std::int64_t x, std::int64_t, T value) { to[y * wide + x] = value; });
  });
}

void resize_bytes(const BytePixels& src, const SeenPart& part, const std::vector<double>& factor,
                  const std::vector<double>& offset, void* dst, const Shape& dst_shape, DType dtype) {
  const std::int64_t high = dst_shape[1], wide = dst_shape[2];
  const auto& [window, full] = part;
  with_float(dtype, [&]<class T>(T) {
    const Taps<T> rows(
        shrunken(line_of(window.top, window.height, full.height, full.top, high), src.shrunk, src.top, src.height));
    const Taps<T> columns(
        shrunken(line_of(window.left, window.width, full.width, full.left, wide), src.shrunk, src.left, src.width));
    const std::vector<T> by(factor.begin(), factor.end()), plus(offset.begin(), offset.end());
    T* const to = static_cast<T*>(dst);
    const auto put = [&](std::int64_t y, std::int64_t x, std::int64_t c, T value) {
      const auto channel = static_cast<std::size_t>(c);
      to[(c * high + y) * wide + x] = value * by[channel] + plus[channel];
    };
    if (src.channels == 3)
      resize_lines(src.pixels, src.width * 3, 3, rows, columns, put);
    else
      resize_lines(src.pixels, src.width * src.channels, src.channels, rows, columns, put);
  });
}

ImageWindow pixels_of(const SeenPart& part, std::int64_t height, std::int64_t width) {
  const auto& [window, full] = part;
  const Taps<double> rows(line_of(window.top, window.height, full.height, full.top, height));
  const Taps<double> columns(line_of(window.left, window.width, full.width, full.left, width));
  return {.top = rows.first(),
          .left = columns.first(),
          .height = rows.end() - rows.first(),
          .width = columns.end() - columns.first()};
}

SeenPart central_part(std::int64_t height, std::int64_t width, const ImageView& view) {
  const std::int64_t shorter = std::min(height, width);
  const auto scaled = [&](std::int64_t side) { return view.resize * side / shorter; };
  const auto half = [](std::int64_t rest) {
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(rest) / 2));
  };
  return {.window = {.top = 0, .left = 0, .height = height, .width = width},
          .full = {.height = scaled(height),
                   .width = scaled(width),
                   .top = half(scaled(height) - view.height),
                   .left = half(scaled(width) - view.width)}};
}

void central_view(const void* src, const Shape& src_shape, const ImageView& view, void* dst, DType dtype) {
  const SeenPart part = central_part(src_shape[1], src_shape[2], view);
  resize(src, src_shape, part.window, part.full, dst, view.shape_of(src_shape), dtype);
}

}  // namespace echelon::inline data
