// SPDX-License-Identifier: Apache-2.0
// Covering arrays of strength two: few rows that together hold every pair of values of every two axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace echelon::test {

struct Axis {
  std::string name;
  std::vector<std::string> values;
};

// The index of each axis's value.
using PairwiseRow = std::vector<std::size_t>;

// Two axes, with a value of each.
struct ValuePair {
  std::size_t axis = 0, value = 0, other = 0, of_other = 0;
};

struct PairwiseTable {
  std::vector<PairwiseRow> rows;     // all allowed; rows that cover most come first
  std::vector<ValuePair> forbidden;  // pairs that are in no row
};

// Builds rows that hold all pairs that can occur; the same axes and seed give the same rows. Greedy (after Cohen et
// al., IEEE TSE 23(7), 1997): each row begins with a pair that is not covered yet; then axes in random order take the
// value that adds most new pairs among those that keep the row allowed; the best of several such rows is taken.
// `allowed` judges a whole row. An axis's first value is its neutral one, and the row of first values must be allowed.
// A pair is forbidden if no allowed row holds it and differs from the neutral row in at most one more value.
PairwiseTable pairwise_table(const std::vector<Axis>& axes, std::uint64_t seed,
                             const std::function<bool(const PairwiseRow&)>& allowed = {});

// Returns the number of pairs of values of two axes.
std::size_t count_pairs(const std::vector<Axis>& axes);

// Returns text like "strategy=server codec=none"; values have no blanks.
std::string text_of(const std::vector<Axis>& axes, const PairwiseRow& row);
std::string text_of(const std::vector<Axis>& axes, const ValuePair& pair);
// Parses such a text; axes that it leaves out get their first value. Throws std::runtime_error for unknown names.
PairwiseRow row_of(const std::vector<Axis>& axes, const std::string& text);

}  // namespace echelon::test
