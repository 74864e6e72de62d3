// SPDX-License-Identifier: Apache-2.0
// The dimensions of a search: keys with a range or choices, and points of the unit cube that stand for their values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline study {

// A point of [0, 1]^d with one coordinate per range.
using Point = std::vector<double>;

struct SearchRange {
  std::string key;
  double low = 0, high = 1;
  bool logarithmic = false;               // equal ratios have equal distances
  bool whole = false;                     // whole numbers
  std::vector<std::string> choices = {};  // as written after "="; instead of low and high

  // The value of a coordinate, as written after "=".
  std::string value(double coordinate) const;
  // Returns the midpoint of all coordinates that stand for the same value.
  double settle(double coordinate) const;
};

// Coordinates drawn uniformly from the seed and the number of the trial; the same on any machine.
Point random_point(std::size_t dimensions, std::uint64_t seed, std::uint64_t trial);

}  // namespace echelon::inline study
