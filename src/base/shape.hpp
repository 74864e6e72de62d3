// SPDX-License-Identifier: Apache-2.0
// A tensor's extents, outermost first: at most 6, stored in place without allocation. Extents may be 0. Violating a
// precondition below is a failed check (exit 1).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace echelon::inline base {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  // Takes at most kMaxRank extents, none of them negative.
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  // 0 <= axis < rank(); not checked.
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }

  // Product of the extents; 1 for a scalar (rank 0). Overflow is not checked.
  std::int64_t elems() const;
  // Elements per step along the outermost axis, i.e. the product of the other extents; 1 for a scalar.
  std::int64_t row_elems() const;

  // (N, C, H, W) -> (extent, C, H, W); the rank is at least 1.
  Shape with_front(std::int64_t extent) const;
  // The shape with another extent of one axis; 0 <= axis < rank().
  Shape with(int axis, std::int64_t extent) const;
  // (C, H, W) -> (extent, C, H, W); the rank is below kMaxRank.
  Shape prepended(std::int64_t extent) const;
  // (N, C, H, W) -> (C, H, W); a scalar remains a scalar.
  Shape without_front() const;
  // Merges axes `axis` and `axis` + 1, which leaves row-major data unchanged: (2, 3, 4).folded(1) = (2, 12). axis < 0:
  // returns *this.
  Shape folded(int axis) const;

  // "(32, 3, 28, 28)"
  std::string text() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> extents_{};
};

}  // namespace echelon::inline base
