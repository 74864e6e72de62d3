// SPDX-License-Identifier: Apache-2.0
#include "data/colour.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace echelon::inline data {
namespace {

enum Step : int { kBrightness, kContrast, kSaturation, kHue };

template <class T>
T within_unit(T value) {
  return std::clamp(value, T{0}, T{1});
}

template <class T>
struct Pixels {
  T* values;
  std::int64_t channels, places;
  T grey(std::int64_t i) const {
    if (channels < 3) return values[i];
    return static_cast<T>(0.2989) * values[i] + static_cast<T>(0.587) * values[i + places] +
           static_cast<T>(0.114) * values[i + 2 * places];
  }
};

template <class T>
T mean_grey(const Pixels<T>& pixels) {
  double sum = 0;
  for (std::int64_t i = 0; i < pixels.places; ++i) sum += static_cast<double>(pixels.grey(i));
  return static_cast<T>(sum / static_cast<double>(pixels.places));
}

// Smith 1978: from red, green and blue to hue (in turns), saturation and value, and back.
template <class T>
void turn_hue(T& r, T& g, T& b, T by) {
  const T most = std::max({r, g, b}), range = most - std::min({r, g, b});
  if (range == 0) return;
  const T s = range / most, to_r = (most - r) / range, to_g = (most - g) / range, to_b = (most - b) / range;
  const T sector = most == r ? to_b - to_g : most == g ? 2 + to_r - to_b : 4 + to_g - to_r;
  T hue = sector / 6 + by;
  hue -= std::floor(hue);
  const T part = hue * 6, whole = std::floor(part), f = part - whole;
  const T p = within_unit(most * (1 - s)), q = within_unit(most * (1 - s * f)),
          t = within_unit(most * (1 - s * (1 - f)));
  switch (static_cast<int>(whole) % 6) {
    case 0: r = most, g = t, b = p; break;
    case 1: r = q, g = most, b = p; break;
    case 2: r = p, g = most, b = t; break;
    case 3: r = p, g = q, b = most; break;
    case 4: r = t, g = p, b = most; break;
    default: r = most, g = p, b = q; break;
  }
}

template <class T>
void apply(int step, T factor, const Pixels<T>& pixels) {
  T* const v = pixels.values;
  const std::int64_t places = pixels.places;
  if (step == kHue) {
    for (std::int64_t i = 0; i < places; ++i) turn_hue(v[i], v[i + places], v[i + 2 * places], factor);
    return;
  }
  const T middle = step == kContrast ? mean_grey(pixels) : T{0};
  for (std::int64_t i = 0; i < places; ++i) {
    const T towards = step == kSaturation ? pixels.grey(i) : middle;
    for (std::int64_t c = 0; c < pixels.channels; ++c)
      v[c * places + i] = within_unit(factor * v[c * places + i] + (1 - factor) * towards);
  }
}

}  // namespace

void jitter_colours(const AugmentKeys& keys, const HashRng& draws, void* image, const Shape& shape, DType dtype) {
  std::array<int, 4> order = {kBrightness, kContrast, kSaturation, kHue};
  for (std::uint64_t i = 3; i > 0; --i) std::swap(order[i], order[draws.below(i, i + 1)]);
  const std::array<double, 4> amounts = {keys.brightness, keys.contrast, keys.saturation, keys.hue};
  with_float(dtype, [&]<class T>(T) {
    const Pixels<T> pixels{static_cast<T*>(image), shape[0], shape.without_front().elems()};
    for (const int step : order) {
      const double amount = amounts[static_cast<std::size_t>(step)];
      if (amount == 0) continue;
      const double low = step == kHue ? -amount : std::max(0.0, 1 - amount), high = step == kHue ? amount : 1 + amount;
      apply(step, static_cast<T>(low + (high - low) * draws.uniform(8 + static_cast<std::uint64_t>(step))), pixels);
    }
  });
}

}  // namespace echelon::inline data
