// SPDX-License-Identifier: Apache-2.0
// Changes of training images against plain formulas and figures of PyTorch's functional forms.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "data/augment.hpp"
#include "data/colour.hpp"
#include "data/erase.hpp"
#include "data/mix.hpp"
#include "data/turn.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

// The image of which the figures below were made.
std::vector<double> patterned(std::int64_t elems) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < elems; ++i) values.push_back(static_cast<double>((i * 37 + 11) % 101) / 50 - 1);
  return values;
}

void check_near(const std::vector<double>& found, const std::vector<double>& expected, double within = 1e-8) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::fabs(found[i] - expected[i]) <= within);
}

TEST_CASE("windows are resized as PyTorch's interpolate resizes them, without antialiasing", "[data]") {
  const std::vector<double> image = patterned(2 * 5 * 7);
  std::vector<double> dst(2 * 4 * 5);
  resize(image.data(), {2, 5, 7}, {.top = 1, .left = 2, .height = 3, .width = 4}, {.height = 4, .width = 5}, dst.data(),
         {2, 4, 5}, DType::f64);
  // F.interpolate(image[:, :, 1:4, 2:6], (4, 5), mode = "bilinear", align_corners = False)
  check_near(dst, {-0.18, 0.338,    -0.08,    -0.498,   0.02,    0.5325, 0.16675,  0.00125, -0.16425, -0.53,
                   0.63,  0.26425,  0.09875,  -0.06675, -0.4325, 0.08,   0.598,    0.18,    -0.238,   0.28,
                   -0.54, -0.022,   0.57,     0.556,    -0.34,   0.1725, -0.19325, 0.02,    0.38475,  0.3725,
                   0.27,  -0.09575, -0.26125, -0.048,   0.47,    -0.28,  0.238,    -0.18,   -0.598,   -0.08});
  central_view(image.data(), {2, 5, 7}, {.height = 4, .width = 5, .resize = 6}, dst.data(), DType::f64);
  // The same to (6, 8), rows 1 to 4, columns 2 to 6
  check_near(
      dst, {-0.19125,     0.1721875,    -0.0640625,  -0.26875,    0.2840625,   0.25375,      0.2384375,   0.0021875,
            -0.191979167, -0.354583333, 0.362083333, 0.346770833, 0.110520833, -0.083645833, -0.4040625,  -0.2134375,
            0.27625,      0.2609375,    -0.1015625,  -0.0853125,  -0.0778125,  -0.1878125,   0.23875,     0.4128125,
            -0.0759375,   0.156770833,  -0.1215625,  0.010416667, 0.394895833, 0.2428125,    0.265104167, -0.013229167,
            -0.249479167, -0.075416667, 0.351145833, 0.2471875,   0.1371875,   -0.0990625,   -0.4615625,  -0.16125},
      2e-9 + 1e-8);
  std::vector<double> same(image.size());
  resize(image.data(), {2, 5, 7}, {.height = 5, .width = 7}, {.height = 5, .width = 7}, same.data(), {2, 5, 7},
         DType::f64);
  CHECK(same == image);
}

TEST_CASE("random windows have the shares and the ratios that are asked for", "[data]") {
  const HashRng rng(test::test_seed(), "windows");
  double least = 1, most = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const ImageWindow window = random_window(rng.at(i), 61, 47, {0.2, 0.8, 0.5, 2});
    CHECK((window.top >= 0 && window.left >= 0 && window.height > 0 && window.width > 0));
    CHECK((window.top + window.height <= 61 && window.left + window.width <= 47));
    const double share = static_cast<double>(window.height * window.width) / (61.0 * 47);
    const double ratio = static_cast<double>(window.width) / static_cast<double>(window.height);
    CHECK((share > 0.17 && share < 0.83 && ratio > 0.46 && ratio < 2.2));
    least = std::min(least, share), most = std::max(most, share);
  }
  CHECK((least < 0.3 && most > 0.6));
  // No window of this ratio fits: the largest central one is taken.
  CHECK(random_window(rng, 10, 100, {1, 1, 1, 1}) == ImageWindow{.top = 0, .left = 45, .height = 10, .width = 10});
}

// The colours of one pixel after a jitter that can only have this factor.
TEST_CASE("colours follow the published formulas", "[data]") {
  const auto jittered = [](const AugmentKeys& keys, std::vector<double> image, std::uint64_t id,
                           std::int64_t channels) {
    const auto places = static_cast<std::int64_t>(image.size()) / channels;
    jitter_colours(keys, HashRng(test::test_seed(), "colours").at(id), image.data(), {channels, 1, places}, DType::f64);
    return image;
  };
  const std::vector<double> image = {0.2, 0.7, 0.4, 0.9, 0.5, 0.1, 0.4, 0.8, 0.9, 0.3, 0.4, 0.05};  // 4 pixels
  const auto grey = [&](std::size_t i) { return 0.2989 * image[i] + 0.587 * image[i + 4] + 0.114 * image[i + 8]; };
  const double mean = (grey(0) + grey(1) + grey(2) + grey(3)) / 4;
  for (std::uint64_t id = 0; id < 20; ++id) {
    CAPTURE(id);
    // One value that no clamp touched tells the factor.
    const std::vector<double> bright = jittered({.brightness = 0.4}, image, id, 3);
    const double b = bright[11] / image[11];
    CHECK((b >= 0.6 && b <= 1.4));
    const std::vector<double> contrast = jittered({.contrast = 0.3}, image, id, 3);
    const double c = (contrast[2] - mean) / (image[2] - mean);
    CHECK((c >= 0.7 - 1e-9 && c <= 1.3 + 1e-9));
    const std::vector<double> saturated = jittered({.saturation = 0.5}, image, id, 3);
    const double s = (saturated[0] - grey(0)) / (image[0] - grey(0));
    CHECK((s >= 0.5 - 1e-9 && s <= 1.5 + 1e-9));
    for (std::size_t i = 0; i < 12; ++i) {
      CHECK(bright[i] == Approx(std::clamp(b * image[i], 0.0, 1.0)).margin(1e-12));
      CHECK(contrast[i] == Approx(std::clamp(c * image[i] + (1 - c) * mean, 0.0, 1.0)).margin(1e-12));
      CHECK(saturated[i] == Approx(std::clamp(s * image[i] + (1 - s) * grey(i % 4), 0.0, 1.0)).margin(1e-12));
    }
    const std::vector<double> together = jittered({.brightness = 0.2, .contrast = 0.2}, {0.3, 0.5, 0.6}, id, 1);
    CHECK((together[1] - together[0]) / (together[2] - together[1]) == Approx(2));
  }
}

// Hue in turns, saturation and value as Python's colorsys.rgb_to_hsv.
std::array<double, 3> hsv(double r, double g, double b) {
  const double most = std::max({r, g, b}), range = most - std::min({r, g, b});
  if (range == 0) return {0, 0, most};
  const double hue = r == most ? (g - b) / range : g == most ? 2 + (b - r) / range : 4 + (r - g) / range;
  return {std::fmod(hue / 6 + 1, 1), range / most, most};
}

TEST_CASE("all hues turn alike, and grey, saturation and value stay", "[data]") {
  const double pixels[4][3] = {{0.2, 0.5, 0.9}, {0.7, 0.1, 0.3}, {0.4, 0.4, 0.4}, {0.9, 0.8, 0.05}};
  const double most = GENERATE(0.1, 0.5);
  double least_turn = 0, most_turn = 0;
  for (std::uint64_t id = 0; id < 60; ++id) {
    std::vector<double> image;
    for (int c = 0; c < 3; ++c)
      for (const auto& pixel : pixels) image.push_back(pixel[c]);
    jitter_colours({.hue = most}, HashRng(test::test_seed(), "hues").at(id), image.data(), {3, 2, 2}, DType::f64);
    std::vector<double> turns;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto before = hsv(pixels[i][0], pixels[i][1], pixels[i][2]),
                 after = hsv(image[i], image[i + 4], image[i + 8]);
      CHECK(after[1] == Approx(before[1]).margin(1e-12));
      CHECK(after[2] == Approx(before[2]).margin(1e-12));
      if (before[1] > 0) turns.push_back(after[0] - before[0] - std::round(after[0] - before[0]));
    }
    const auto apart = [](double a, double b) { return std::fabs(a - b - std::round(a - b)); };
    CHECK((apart(turns[0], turns[1]) < 1e-9 && apart(turns[0], turns[2]) < 1e-9));
    least_turn = std::min(least_turn, turns[0]), most_turn = std::max(most_turn, turns[0]);
  }
  CHECK((least_turn >= -most - 1e-9 && least_turn < -most / 2 && most_turn <= most + 1e-9 && most_turn > most / 2));
}

TEST_CASE("turns are the mirrors and rotations of a plane and of a cube", "[data]") {
  const auto all = [](const AugmentKeys& keys, const Shape& shape) {
    std::map<std::vector<double>, int> found;
    const std::vector<double> src = patterned(shape.elems());
    std::vector<double> dst(src.size());
    for (std::uint64_t id = 0; id < 600; ++id) {
      turn(random_turn(keys, HashRng(test::test_seed(), "turns").at(id)), src.data(), dst.data(), shape, DType::f64);
      ++found[dst];
    }
    for (const auto& [values, count] : found) CHECK(count > 3);
    return found;
  };
  CHECK(all({.rotate = Rotate::plane}, {2, 4, 4}).size() == 4);
  CHECK(all({.rotate = Rotate::plane}, {1, 3, 4, 4}).size() == 4);
  CHECK(all({.flip_rows = true, .rotate = Rotate::plane}, {2, 4, 4}).size() == 8);
  CHECK(all({.rotate = Rotate::cube}, {1, 3, 3, 3}).size() == 24);
  CHECK(all({.flip_depth = true, .rotate = Rotate::cube}, {1, 3, 3, 3}).size() == 48);
  CHECK(all({.flip_rows = true, .flip_depth = true}, {2, 3, 4, 5}).size() == 4);
}

TEST_CASE("a quarter turn moves columns into rows, and a rotation keeps the handedness", "[data]") {
  const std::vector<double> src = {1, 2, 3, 4};
  std::set<std::vector<double>> found;
  for (std::uint64_t id = 0; id < 60; ++id) {
    std::vector<double> dst(4);
    turn(random_turn({.rotate = Rotate::plane}, HashRng(7, "turns").at(id)), src.data(), dst.data(), {1, 2, 2},
         DType::f64);
    found.insert(dst);
  }
  CHECK(found == std::set<std::vector<double>>{{1, 2, 3, 4}, {3, 1, 4, 2}, {4, 3, 2, 1}, {2, 4, 1, 3}});
  for (std::uint64_t id = 0; id < 200; ++id) {
    const Turn one = random_turn({.rotate = Rotate::cube}, HashRng(7, "cubes").at(id));
    int sign = 1;
    for (std::size_t a = 0; a < 3; ++a) {
      if (one.mirrored[a]) sign = -sign;
      for (std::size_t b = a + 1; b < 3; ++b)
        if (one.from[a] > one.from[b]) sign = -sign;
    }
    CHECK(sign == 1);
  }
}

TEST_CASE("erased rectangles have shares, ratios and a probability; cutout is a square around any place", "[data]") {
  const AugmentKeys keys{.erase = 0.4, .erase_scale = {0.1, 0.3}, .erase_ratio = {0.5, 2}, .cutout = 5};
  int erased = 0;
  std::set<std::int64_t> tops;
  for (std::uint64_t id = 0; id < 1000; ++id) {
    const HashRng draws = HashRng(test::test_seed(), "erase").at(id);
    const Box box = erased_box(keys, draws, {.channels = 3, .depth = 1, .height = 20, .width = 30});
    erased += box.places() > 0 ? 1 : 0;
    if (box.places() > 0) {
      const double share = static_cast<double>(box.places()) / 600;
      CHECK((share > 0.08 && share < 0.33 && box.end[1] <= 20 && box.end[2] <= 30));
    }
    const Box cut = cutout_box(keys, draws, {1, 8, 9});
    CHECK((cut.begin[0] == 0 && cut.end[0] == 1 && cut.begin[1] >= 0 && cut.end[1] <= 8 && cut.end[2] <= 9));
    CHECK((cut.end[1] - cut.begin[1] >= 3 && cut.end[1] - cut.begin[1] <= 5));
    tops.insert(cut.begin[1]);
  }
  CHECK((erased > 300 && erased < 500));
  CHECK(tops == std::set<std::int64_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("an augmented sample depends on seed, epoch and sample alone, and steps follow each other", "[data]") {
  const ImageView view{.height = 6, .width = 6, .resize = 7};
  AugmentKeys keys{.crop_scale = {0.3, 1}, .brightness = 0.2, .contrast = 0.2, .saturation = 0.2, .hue = 0.1};
  keys.flip_rows = true, keys.rotate = Rotate::plane, keys.cutout = 2, keys.erase = 0.5;
  const ColourScale scale{.mean = {0.5, 0.5, 0.5}, .std = {0.25, 0.25, 0.25}};
  Augmenter one({.flip = true, .keys = keys, .seed = 5}, view, scale),
      other({.flip = true, .keys = keys, .seed = 5}, view, scale);
  std::vector<double> image = patterned(3 * 9 * 11), first(3 * 36), again(first.size()), next(first.size());
  for (std::int64_t id = 0; id < 30; ++id) {
    one(image.data(), first.data(), {3, 9, 11}, DType::f64, 2, id);
    other(image.data(), next.data(), {3, 9, 11}, DType::f64, 3, id);
    other(image.data(), again.data(), {3, 9, 11}, DType::f64, 2, id);
    CHECK(first == again);
    CHECK(first != next);
    for (const double value : first) CHECK((value >= -2 - 1e-9 && value <= 2 + 1e-9));  // colours are in [0, 1]
  }
  // Without colours and erased parts the result is the mirrored, turned crop, with the extremes of the crop.
  Augmenter still({.seed = 5}, view);
  std::vector<double> seen(first.size()), central(first.size());
  still(image.data(), seen.data(), {3, 9, 11}, DType::f64, 0, 1);
  central_view(image.data(), {3, 9, 11}, view, central.data(), DType::f64);
  CHECK(seen == central);
}

TEST_CASE("shares of mixed samples follow Beta(alpha, alpha)", "[data]") {
  const double alpha = GENERATE(0.05, 0.2, 1.0, 4.0);
  CAPTURE(alpha);
  const int count = 20000;
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double draw = beta_draw(HashRng(11, "beta").at(i), alpha);
    REQUIRE((draw >= 0 && draw <= 1));
    sum += draw, squares += draw * draw;
  }
  const double mean = sum / count, variance = squares / count - mean * mean, expected = 1 / (4 * (2 * alpha + 1));
  // Five standard errors: the variance of the mean is `expected` / count, values are within 1.
  CHECK(std::fabs(mean - 0.5) < 5 * std::sqrt(expected / count));
  CHECK(std::fabs(variance - expected) < 5 * 0.5 / std::sqrt(count));
}

TEST_CASE("mixtures blend two samples, or take a box whose share is the other's weight", "[data]") {
  const Shape shape = GENERATE(Shape{2, 9}, Shape{2, 6, 7}, Shape{2, 4, 5, 6});
  const std::vector<double> own = patterned(shape.elems());
  const std::vector<double> other(own.size(), 5.0);
  const SampleMixer blends({.mixup = 0.4}, 3), cuts({.cutmix = 1}, 3), both({.mixup = 1, .cutmix = 1}, 3);
  int cut = 0;
  std::set<std::int64_t> partners;
  for (std::int64_t id = 0; id < 200; ++id) {
    Mixture mixture = blends.mixture(shape, 1, id);
    std::vector<double> mixed = own;
    SampleMixer::apply(mixture, mixed.data(), other.data(), shape, DType::f64);
    for (std::size_t i = 0; i < own.size(); ++i)
      CHECK(mixed[i] == Approx(mixture.own * own[i] + (1 - mixture.own) * 5).margin(1e-12));
    mixture = cuts.mixture(shape, 1, id);
    mixed = own;
    SampleMixer::apply(mixture, mixed.data(), other.data(), shape, DType::f64);
    const auto taken = static_cast<double>(std::count(mixed.begin(), mixed.end(), 5.0));
    CHECK(taken == Approx((1 - mixture.own) * static_cast<double>(own.size())).margin(1e-9));
    cut += both.mixture(shape, 1, id).cuts ? 1 : 0;
    partners.insert(both.other({3, 8, 9, 20}, 1, id));
  }
  CHECK((cut > 60 && cut < 140));
  CHECK(partners == std::set<std::int64_t>{3, 8, 9, 20});
  CHECK(both.other({}, 1, 17) == 17);
  CHECK(SampleMixer::pool({{.id = 9, .counts = true}, {.id = 4, .counts = false}, {.id = 2, .counts = true}}) ==
        std::vector<std::int64_t>{2, 9});
}

}  // namespace
}  // namespace echelon
