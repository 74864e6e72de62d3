// SPDX-License-Identifier: Apache-2.0
// A set of rows of a table, one bit per row: row r is bit r % 32 of word r / 32. Sparse gradients are cleared, updated
// and sent by it. Bits behind the last row have no meaning.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/hash_rng.hpp"

namespace echelon::inline device {

inline constexpr std::int64_t kRowsOfWord = 32;

ECHELON_HOST_DEVICE constexpr std::int64_t row_words(std::int64_t rows) {
  return (rows + kRowsOfWord - 1) / kRowsOfWord;
}

// A table of (rows, width) values and the bits of its rows, in a device's memory.
struct RowMarks {
  std::uint32_t* words = nullptr;
  std::int64_t rows = 0;
  std::int64_t width = 0;
};

ECHELON_HOST_DEVICE inline bool row_marked(const std::uint32_t* words, std::int64_t row) {
  return (words[row / kRowsOfWord] >> row % kRowsOfWord & 1U) != 0;
}

inline void mark_row(std::uint32_t* words, std::int64_t row) {
  words[row / kRowsOfWord] |= std::uint32_t{1} << row % kRowsOfWord;
}

// The first row from `from` on that is marked, or unmarked (`marked` false); `rows` if there is none.
inline std::int64_t next_row(const std::uint32_t* words, std::int64_t rows, std::int64_t from, bool marked) {
  for (std::int64_t w = from / kRowsOfWord; w * kRowsOfWord < rows; ++w) {
    std::uint32_t bits = marked ? words[w] : ~words[w];
    if (w == from / kRowsOfWord) bits &= ~std::uint32_t{0} << from % kRowsOfWord;
    if (bits != 0) return std::min(rows, w * kRowsOfWord + std::countr_zero(bits));
  }
  return rows;
}

// Calls body(first, count) for every run of marked rows, in order.
template <class Body>
void for_each_run(const std::uint32_t* words, std::int64_t rows, Body&& body) {
  for (std::int64_t first = next_row(words, rows, 0, true); first < rows;) {
    const std::int64_t end = next_row(words, rows, first, false);
    body(first, end - first);
    first = next_row(words, rows, end, true);
  }
}

}  // namespace echelon::inline device
