// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <set>
#include <vector>

#include "data/augment.hpp"

namespace echelon {
namespace {

struct Found {
  std::int64_t back, down, right;
  bool flip;
};

// The shift and flip that turn `src` into `dst`, both (C, D, H, W); none if there is no such shift up to `most`.
std::optional<Found> shift_between(const std::vector<double>& src, const std::vector<double>& dst, const Shape& shape,
                                   std::int64_t most) {
  const std::int64_t D = shape[1], H = shape[2], W = shape[3];
  const auto agrees = [&](const Found& f) {
    for (std::int64_t c = 0; c < shape[0]; ++c)
      for (std::int64_t z = 0; z < D; ++z)
        for (std::int64_t h = 0; h < H; ++h)
          for (std::int64_t w = 0; w < W; ++w) {
            const std::int64_t from_z = z + f.back, from_h = h + f.down, from_w = (f.flip ? W - 1 - w : w) + f.right;
            const bool inside = from_z >= 0 && from_z < D && from_h >= 0 && from_h < H && from_w >= 0 && from_w < W;
            const auto at = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
              return static_cast<std::size_t>(((c * D + i) * H + j) * W + k);
            };
            if (dst[at(z, h, w)] != (inside ? src[at(from_z, from_h, from_w)] : 0)) return false;
          }
    return true;
  };
  for (std::int64_t back = -most; back <= most; ++back)
    for (std::int64_t down = -most; down <= most; ++down)
      for (std::int64_t right = -most; right <= most; ++right)
        for (const bool flip : {false, true})
          if (const Found found{back, down, right, flip}; agrees(found)) return found;
  return {};
}

// The shifts along each axis and the flips of many samples of this shape.
struct Moves {
  std::set<std::int64_t> back, down, right;
  std::set<bool> flips;
};
Moves moves_of(const Shape& shape, const Shape& as_volume) {
  Augmenter augment({.crop_padding = 2, .flip = true, .seed = 3});
  std::vector<double> src(static_cast<std::size_t>(shape.elems())), dst(src.size());
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<double>(i + 1);
  Moves moves;
  for (std::int64_t id = 0; id < 60; ++id) {
    augment(src.data(), dst.data(), shape, DType::f64, 1, id);
    const std::optional<Found> found = shift_between(src, dst, as_volume, 2);
    REQUIRE(found);
    moves.back.insert(found->back), moves.down.insert(found->down), moves.right.insert(found->right);
    moves.flips.insert(found->flip);
  }
  return moves;
}

TEST_CASE("volumes, images and series are cropped along their own axes", "[data]") {
  const std::set<std::int64_t> all = {-2, -1, 0, 1, 2}, none = {0};
  const Moves volume = moves_of({2, 4, 5, 6}, {2, 4, 5, 6});
  CHECK((volume.back == all && volume.down == all && volume.right == all && volume.flips.size() == 2));
  const Moves image = moves_of({2, 5, 6}, {2, 1, 5, 6});
  CHECK((image.back == none && image.down == all && image.right == all && image.flips.size() == 2));
  const Moves series = moves_of({2, 9}, {2, 1, 1, 9});
  CHECK((series.back == none && series.down == none && series.right == all && series.flips.size() == 2));
}

}  // namespace
}  // namespace echelon
