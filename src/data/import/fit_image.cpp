// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "data/import/image.hpp"

namespace echelon::inline data {
namespace {

constexpr int kWeightBits = 22;  // 8 of 32 bits hold a pixel and 2 are spare

// The source pixels that contribute to each destination pixel of an axis, with their weights.
struct Axis {
  struct Part {
    int first = 0, count = 0;  // source pixels
    std::size_t weights = 0;   // index of the first weight
  };
  std::vector<Part> parts;  // [destination pixel]
  std::vector<std::int32_t> weights;

  int first() const { return parts.front().first; }
  int end() const { return parts.back().first + parts.back().count; }
};

// `scaled`: length of the whole axis after scaling; [from, from + count) of it is kept.
Axis axis_of(int source, int scaled, int from, int count) {
  Axis axis;
  const double scale = static_cast<double>(source) / scaled, reach = std::max(1.0, scale), narrow = 1.0 / reach;
  std::vector<double> weights;
  for (int i = from; i < from + count; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(std::lround(centre - reach)));
    const int end = std::min(source, static_cast<int>(std::lround(centre + reach)));
    weights.clear();
    double sum = 0;
    for (int x = first; x < end; ++x) {
      weights.push_back(std::max(0.0, 1.0 - std::abs((x - centre + 0.5) * narrow)));
      sum += weights.back();
    }
    axis.parts.push_back({first, end - first, axis.weights.size()});
    for (const double weight : weights)
      axis.weights.push_back(static_cast<std::int32_t>(std::lround(weight / sum * (1 << kWeightBits))));
  }
  return axis;
}

std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp((sum + (1 << (kWeightBits - 1))) >> kWeightBits, 0, 255));
}

// Weighted sums of C interleaved channels; pixels are `step` values apart.
template <int C>
void weigh(const Axis& axis, const Axis::Part& part, const std::uint8_t* src, std::size_t step, std::uint8_t* dst) {
  std::array<std::int32_t, C> sums{};
  const std::int32_t* weights = axis.weights.data() + part.weights;
  for (int i = 0; i < part.count; ++i, src += step)
    for (int c = 0; c < C; ++c) sums[static_cast<std::size_t>(c)] += src[c] * weights[i];
  for (int c = 0; c < C; ++c) dst[c] = rounded(sums[static_cast<std::size_t>(c)]);
}

template <int C>
void fit(const Image& image, int height, int width, std::uint8_t* planes) {
  const std::int64_t w = image.width, h = image.height;
  const bool low = w * height >= h * width;  // too low for its width: the height determines the scale
  const int wide = low ? static_cast<int>((2 * w * height + h) / (2 * h)) : width;
  const int high = low ? height : static_cast<int>((2 * h * width + w) / (2 * w));
  const Axis columns = axis_of(image.width, wide, (wide - width) / 2, width);
  const Axis rows = axis_of(image.height, high, (high - height) / 2, height);

  const std::size_t row = static_cast<std::size_t>(width) * C, source_row = static_cast<std::size_t>(image.width) * C;
  std::vector<std::uint8_t> narrowed(static_cast<std::size_t>(rows.end() - rows.first()) * row);  // columns done
  std::uint8_t* dst = narrowed.data();
  for (int y = rows.first(); y < rows.end(); ++y) {
    const std::uint8_t* src = image.pixels.data() + static_cast<std::size_t>(y) * source_row;
    for (const Axis::Part& part : columns.parts) {
      weigh<C>(columns, part, src + static_cast<std::size_t>(part.first) * C, C, dst);
      dst += C;
    }
  }
  const std::size_t plane = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  for (std::size_t y = 0; y < rows.parts.size(); ++y) {
    const Axis::Part& part = rows.parts[y];
    const std::uint8_t* src = narrowed.data() + static_cast<std::size_t>(part.first - rows.first()) * row;
    for (std::size_t x = 0; x < static_cast<std::size_t>(width); ++x) {
      std::array<std::uint8_t, C> pixel;
      weigh<C>(rows, part, src + x * C, row, pixel.data());
      for (std::size_t c = 0; c < C; ++c) planes[c * plane + y * static_cast<std::size_t>(width) + x] = pixel[c];
    }
  }
}

void to_planes(const Image& image, std::uint8_t* planes) {
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::size_t plane = image.pixels.size() / channels;
  for (std::size_t i = 0; i < plane; ++i)
    for (std::size_t c = 0; c < channels; ++c) planes[c * plane + i] = image.pixels[i * channels + c];
}

}  // namespace

void fit_image(const Image& image, int height, int width, std::uint8_t* planes) {
  if (image.width == width && image.height == height) return to_planes(image, planes);
  if (image.channels == 1)
    fit<1>(image, height, width, planes);
  else
    fit<3>(image, height, width, planes);
}

}  // namespace echelon::inline data
