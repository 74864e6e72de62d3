// SPDX-License-Identifier: Apache-2.0
#include "base/shape.hpp"

#include "base/check.hpp"

namespace echelon::inline base {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  ECHELON_CHECK_LE(rank_, kMaxRank, "a tensor has at most {} axes", kMaxRank);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    ECHELON_CHECK_GE(extents[i], 0, "extent {} of a shape is negative", i);
    extents_[i] = extents[i];
  }
}

std::int64_t Shape::elems() const {
  std::int64_t product = 1;
  for (std::int64_t extent : extents()) product *= extent;
  return product;
}

std::int64_t Shape::row_elems() const { return without_front().elems(); }

Shape Shape::with_front(std::int64_t extent) const {
  ECHELON_CHECK_GE(rank_, 1, "a scalar has no outermost axis");
  Shape other = *this;
  other.extents_[0] = extent;
  return other;
}

Shape Shape::with(int axis, std::int64_t extent) const {
  ECHELON_CHECK(axis >= 0 && axis < rank_, "axis {} of {}", axis, text());
  Shape other = *this;
  other.extents_[static_cast<std::size_t>(axis)] = extent;
  return other;
}

Shape Shape::prepended(std::int64_t extent) const {
  ECHELON_CHECK_LT(rank_, kMaxRank, "no room for one more axis before {}", text());
  Shape other;
  other.rank_ = rank_ + 1;
  other.extents_[0] = extent;
  for (int i = 0; i < rank_; ++i) other.extents_[static_cast<std::size_t>(i) + 1] = (*this)[i];
  return other;
}

Shape Shape::folded(int axis) const {
  if (axis < 0) return *this;
  ECHELON_CHECK_LT(axis + 1, rank_, "axes {} and {} of {}", axis, axis + 1, text());
  Shape other;
  for (int i = 0; i < rank_; ++i)
    if (i == axis + 1)
      other.extents_[static_cast<std::size_t>(axis)] *= (*this)[i];
    else
      other.extents_[static_cast<std::size_t>(other.rank_++)] = (*this)[i];
  return other;
}

Shape Shape::without_front() const { return rank_ == 0 ? Shape{} : Shape(extents().subspan(1)); }

std::string Shape::text() const {
  std::string out = "(";
  for (int i = 0; i < rank_; ++i) out += (i ? ", " : "") + std::to_string((*this)[i]);
  return out + ")";
}

}  // namespace echelon::inline base
