// SPDX-License-Identifier: Apache-2.0
#include "inference/overlay.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "report/writers/plot.hpp"

namespace echelon::inline inference {
namespace {

using Colour = std::array<double, 3>;

constexpr std::int64_t kLeastSide = 384;  // pixels of the longer side, if places are enlarged
constexpr std::int64_t kOutline = 3;      // an enlarged place has an outline of a third of its side

Colour colour_of_class(std::int32_t k) {
  const std::string text = plot_colour(static_cast<std::size_t>(k) - 1);  // "#rrggbb"
  const auto part = [&](std::size_t at) { return static_cast<double>(std::stoi(text.substr(at, 2), nullptr, 16)); };
  return {part(1), part(3), part(5)};
}

// The middle slice of (.., height, width).
struct Slice {
  std::int64_t height, width, begin;
  explicit Slice(const Shape& shape)
      : height(shape[shape.rank() - 2]),
        width(shape[shape.rank() - 1]),
        begin(shape.elems() / (height * width) / 2 * height * width) {}
};

// The sample's slice as levels from 0 to 255.
class Levels {
 public:
  explicit Levels(const PlacesOfSample& sample)
      : values_(sample.values), slice_(sample.shape.without_front()), each_(sample.shape.row_elems()) {
    coloured_ = sample.shape[0] == 3;
    std::vector<float> all;
    for (std::int64_t c = 0; c < (coloured_ ? 3 : 1); ++c)
      all.insert(all.end(), plane(c), plane(c) + slice_.height * slice_.width);
    const auto percentile = [&](std::size_t hundredth) {
      const auto at = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) * hundredth / 100);
      std::nth_element(all.begin(), at, all.end());
      return static_cast<double>(*at);
    };
    low_ = percentile(1), high_ = percentile(99);
  }

  // The levels at the centre of a place among height x width of them.
  Colour at(std::int64_t y, std::int64_t x, std::int64_t height, std::int64_t width) const {
    const std::int64_t row = (2 * y + 1) * slice_.height / (2 * height);
    const std::int64_t column = (2 * x + 1) * slice_.width / (2 * width);
    Colour levels;
    for (std::size_t c = 0; c < levels.size(); ++c) {
      const double value = plane(coloured_ ? static_cast<std::int64_t>(c) : 0)[row * slice_.width + column];
      const double part = high_ > low_ ? (value - low_) / (high_ - low_) : 0.5;
      levels[c] = 255 * (std::isfinite(part) ? std::clamp(part, 0.0, 1.0) : 0.0);
    }
    return levels;
  }

 private:
  const float* plane(std::int64_t channel) const { return values_ + channel * each_ + slice_.begin; }

  const float* values_;
  Slice slice_;
  std::int64_t each_;
  bool coloured_ = false;
  double low_ = 0, high_ = 0;
};

}  // namespace

bool can_overlay(const Shape& sample, const Shape& places) {
  return (places.rank() == 2 || places.rank() == 3) && sample.rank() == places.rank() + 1;
}

Image overlay_of(const PlacesOfSample& sample) {
  ECHELON_CHECK(can_overlay(sample.shape, sample.places), "samples {} with places {} are neither images nor volumes",
                sample.shape.text(), sample.places.text());
  const Slice places(sample.places);
  const Levels levels(sample);
  const std::int64_t times = std::max<std::int64_t>(1, kLeastSide / std::max(places.height, places.width));
  const std::int64_t height = places.height * times, width = places.width * times;
  const std::int64_t outline = std::max<std::int64_t>(1, times / kOutline);
  const auto index = [&](std::int64_t y, std::int64_t x) {
    return places.begin + y / times * places.width + x / times;
  };
  const auto counts = [&](std::int64_t place) { return sample.labels != nullptr && sample.label_weights[place] > 0; };
  const auto is_outline = [&](std::int64_t y, std::int64_t x) {
    const std::int64_t own = index(y, x);
    if (!counts(own) || sample.labels[own] == 0) return false;
    for (const std::int64_t dy : {-outline, std::int64_t{0}, outline})
      for (const std::int64_t dx : {-outline, std::int64_t{0}, outline}) {
        if (y + dy < 0 || y + dy >= height || x + dx < 0 || x + dx >= width) continue;
        const std::int64_t other = index(y + dy, x + dx);
        if (counts(other) && sample.labels[other] != sample.labels[own]) return true;
      }
    return false;
  };
  Image image{.width = static_cast<int>(width), .height = static_cast<int>(height), .channels = 3, .pixels = {}};
  image.pixels.reserve(static_cast<std::size_t>(height * width * 3));
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t place = index(y, x);
      Colour shown = levels.at(y / times, x / times, places.height, places.width);
      if (is_outline(y, x)) {
        shown = colour_of_class(sample.labels[place]);
      } else if (const std::int32_t k = sample.classes[place]; k > 0) {
        const Colour over = colour_of_class(k);
        for (std::size_t c = 0; c < shown.size(); ++c) shown[c] = (shown[c] + over[c]) / 2;
      }
      for (const double level : shown) image.pixels.push_back(static_cast<std::uint8_t>(std::lround(level)));
    }
  return image;
}

}  // namespace echelon::inline inference
