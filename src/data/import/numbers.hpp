// SPDX-License-Identifier: Apache-2.0
// Parses numbers and cells in lines of text. Pure functions.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace echelon::inline data {

inline std::string_view trimmed(std::string_view cell) {
  const auto begin = cell.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return cell.substr(begin, cell.find_last_not_of(" \t") - begin + 1);
}

// Whether the whole cell is a finite decimal number; if so, sets `value`.
inline bool parse_number(std::string_view cell, double& value) {
  if (!cell.empty() && cell.front() == '+') cell.remove_prefix(1);
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && end == cell.data() + cell.size() && std::isfinite(value);
}

// Whether the whole cell has the form of a number; infinity, NaN and numbers out of range included.
inline bool reads_as_number(std::string_view cell) {
  if (!cell.empty() && cell.front() == '+') cell.remove_prefix(1);
  double ignored = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), ignored);
  return error != std::errc::invalid_argument && end == cell.data() + cell.size();
}

// Calls body(column, cell) for each cell of a line, without the blanks around it. Returns the number of cells.
template <class Body>
std::int64_t for_cells(std::string_view line, char separator, Body&& body) {
  std::int64_t column = 0;
  for (;;) {
    const auto end = line.find(separator);
    body(column++, trimmed(line.substr(0, end)));
    if (end == std::string_view::npos) return column;
    line.remove_prefix(end + 1);
  }
}

}  // namespace echelon::inline data
