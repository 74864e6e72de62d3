// SPDX-License-Identifier: Apache-2.0
// Pictures of the classes of places: every kind of pixel has its colour.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "data/import/image.hpp"
#include "inference/overlay.hpp"

using namespace echelon;

namespace {

using Pixel = std::array<int, 3>;

constexpr Pixel kBlue = {0x00, 0x72, 0xb2}, kOrange = {0xe0, 0x8e, 0x00};  // of classes 1 and 2

Pixel pixel(const Image& image, int y, int x) {
  const std::uint8_t* at = image.pixels.data() + 3 * (y * image.width + x);
  return {at[0], at[1], at[2]};
}

// Half of each, to the nearest level.
Pixel mixed(double grey, const Pixel& colour) {
  Pixel all;
  for (std::size_t c = 0; c < all.size(); ++c) all[c] = static_cast<int>(std::lround((grey + colour[c]) / 2));
  return all;
}

}  // namespace

TEST_CASE("an overlay shows the middle slice, predicted classes half transparent, outlines of labels", "[overlay]") {
  constexpr std::int64_t D = 3, H = 2, W = 400;
  std::vector<float> values(2 * D * H * W, 1e6f), weights(D * H * W, 1);
  std::vector<std::int32_t> classes(D * H * W, 2), labels(D * H * W, 2);
  for (std::int64_t y = 0; y < H; ++y)
    for (std::int64_t x = 0; x < W; ++x) {
      const auto at = static_cast<std::size_t>((H + y) * W + x);  // in the middle slice of the first channel
      values[at] = static_cast<float>(x);
      classes[at] = x >= 300 ? 2 : x >= 100 && x < 200 ? 1 : 0;
      labels[at] = x < 30 ? 2 : x >= 150 && x < 250 ? 1 : 0;
      weights[at] = x < 30 ? 0 : 1;
    }
  const Shape shape{2, D, H, W}, places{D, H, W};
  REQUIRE(can_overlay(shape, places));
  const Image image = overlay_of({.shape = shape,
                                  .values = values.data(),
                                  .places = places,
                                  .classes = classes.data(),
                                  .labels = labels.data(),
                                  .label_weights = weights.data()});
  REQUIRE(image.width == W);
  REQUIRE(image.height == H);
  // The 1st percentile of 800 values is number 7, and the 99th is number 791.
  const auto grey = [](int x) { return 255 * std::clamp((x - 3) / 392.0, 0.0, 1.0); };
  const auto plain = [&](int x) {
    const int level = static_cast<int>(std::lround(grey(x)));
    return Pixel{level, level, level};
  };
  for (const int x : {0, 3, 29, 30, 50, 99, 200, 248, 250, 299}) {
    INFO("column " << x);
    CHECK(pixel(image, 1, x) == plain(x));
  }
  for (const int x : {100, 149, 151, 199}) CHECK(pixel(image, 0, x) == mixed(grey(x), kBlue));
  for (const int x : {300, 399}) CHECK(pixel(image, 0, x) == mixed(grey(x), kOrange));
  for (const int x : {150, 249}) CHECK(pixel(image, 0, x) == kBlue);
  const Image again = decode_png(encode_png(image));
  CHECK(again.channels == 3);
  CHECK(again.width == image.width);
  CHECK(again.pixels == image.pixels);
}

TEST_CASE("an overlay of a small image is enlarged and may have colours", "[overlay]") {
  const std::vector<float> values = {0, 1, 1, 1, 0, 0, 1, 0, 0};  // (3, 1, 3): red, green and blue
  const std::vector<std::int32_t> classes = {0, 1, 0}, labels = {0, 0, 1};
  const std::vector<float> weights = {1, 1, 1};
  const Image image = overlay_of({.shape = {3, 1, 3},
                                  .values = values.data(),
                                  .places = {1, 3},
                                  .classes = classes.data(),
                                  .labels = labels.data(),
                                  .label_weights = weights.data()});
  REQUIRE(image.width == 384);  // 128 pixels for each place
  REQUIRE(image.height == 128);
  CHECK(pixel(image, 60, 10) == Pixel{0, 255, 255});
  CHECK(pixel(image, 60, 140) == Pixel{128, 57, 89});
  CHECK(pixel(image, 60, 256) == kBlue);  // an outline of 42 pixels
  CHECK(pixel(image, 60, 297) == kBlue);
  CHECK(pixel(image, 60, 298) == Pixel{255, 0, 0});
  CHECK_FALSE(can_overlay({3, 8, 8}, {}));
  CHECK_FALSE(can_overlay({8, 8}, {8}));
}
