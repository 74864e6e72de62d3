// SPDX-License-Identifier: Apache-2.0
#include "study/search/range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/hash_rng.hpp"

namespace echelon::inline study {
namespace {

double inside(double coordinate) { return std::clamp(coordinate, 0.0, 1.0); }

std::size_t choice_at(const SearchRange& range, double coordinate) {
  const auto n = range.choices.size();
  return std::min(n - 1, static_cast<std::size_t>(inside(coordinate) * static_cast<double>(n)));
}

double number_at(const SearchRange& range, double coordinate) {
  const double part = inside(coordinate);
  const double value = range.logarithmic ? range.low * std::pow(range.high / range.low, part)
                                         : range.low + part * (range.high - range.low);
  return range.whole ? std::clamp(std::round(value), range.low, range.high) : value;
}

}  // namespace

std::string SearchRange::value(double coordinate) const {
  if (!choices.empty()) return choices[choice_at(*this, coordinate)];
  const double number = number_at(*this, coordinate);
  if (whole) return fmt::format("{:.0f}", number);
  const std::string text = fmt::format("{:.4g}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

double SearchRange::settle(double coordinate) const {
  if (!choices.empty())
    return (static_cast<double>(choice_at(*this, coordinate)) + 0.5) / static_cast<double>(choices.size());
  if (!whole || high <= low) return inside(coordinate);
  const double number = number_at(*this, coordinate);
  return logarithmic ? std::log(number / low) / std::log(high / low) : (number - low) / (high - low);
}

Point random_point(std::size_t dimensions, std::uint64_t seed, std::uint64_t trial) {
  const HashRng draws = HashRng(seed, "search").at(trial);
  Point point(dimensions);
  for (std::size_t d = 0; d < dimensions; ++d) point[d] = draws.uniform(d);
  return point;
}

}  // namespace echelon::inline study
