// A tensor's extents, outermost first; up to 6 of them, stored in place.
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
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }

  // Product of the extents; 1 for a scalar (rank 0).
  std::int64_t elems() const;
  // Elements of one step along the outermost axis.
  std::int64_t row_elems() const;

  // This shape with another outermost extent, or with one more axis in front.
  Shape with_front(std::int64_t extent) const;
  Shape prepended(std::int64_t extent) const;
  // Without the outermost axis.
  Shape without_front() const;
  // With `axis` and the one behind it as one; an axis below 0: as it is.
  Shape folded(int axis) const;

  // "(32, 3, 28, 28)"
  std::string text() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> extents_{};
};

}  // namespace echelon::inline base
