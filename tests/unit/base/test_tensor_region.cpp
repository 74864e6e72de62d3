// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <numeric>

#include "base/tensor_region.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

TEST_CASE("regions go into whole tensors and out of them, element by element", "[base][region]") {
  for (int round = 0; round < 200; ++round) {
    const auto name = "box" + std::to_string(round);
    const int rank = static_cast<int>(test::random_integers(1, 0, 4, name)[0]);
    const auto n = static_cast<std::size_t>(rank);
    const std::vector<std::int64_t> whole = test::random_integers(n, 1, 5, name + " whole");
    std::vector<std::int64_t> shape(n), offset(n);
    for (std::size_t axis = 0; axis < n; ++axis) {
      shape[axis] = test::random_integers(1, 0, whole[axis], name + std::to_string(axis))[0];
      offset[axis] = test::random_integers(1, 0, whole[axis] - shape[axis], name + " at " + std::to_string(axis))[0];
    }
    const TensorRegion region{Shape(shape), Shape(whole), Shape(offset)};
    std::vector<int> all(static_cast<std::size_t>(region.whole.elems())),
        part(static_cast<std::size_t>(region.shape.elems()));
    std::iota(all.begin(), all.end(), 0);
    copy_from_whole(region, sizeof(int), all.data(), part.data());
    std::vector<int> back(all.size(), -1);
    copy_into_whole(region, sizeof(int), part.data(), back.data());
    std::size_t next = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      bool inside = true;
      for (std::size_t axis = n, rest = i; axis-- > 0; rest /= static_cast<std::size_t>(whole[axis])) {
        const auto at = static_cast<std::int64_t>(rest % static_cast<std::size_t>(whole[axis]));
        inside = inside && at >= offset[axis] && at < offset[axis] + shape[axis];
      }
      CHECK(back[i] == (inside ? static_cast<int>(i) : -1));
      if (inside) CHECK(part[next++] == static_cast<int>(i));
    }
    CHECK(next == part.size());
  }
}

TEST_CASE("a region beyond its whole is a defect", "[base][region]") {
  int part[4] = {}, whole[9] = {};
  CHECK_THROWS(copy_into_whole({Shape{2, 2}, Shape{3, 3}, Shape{2, 0}}, sizeof(int), part, whole));
  CHECK_THROWS(copy_into_whole({Shape{2, 2}, Shape{9}, Shape{0}}, sizeof(int), part, whole));
}

}  // namespace
}  // namespace echelon
