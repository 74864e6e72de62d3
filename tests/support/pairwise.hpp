// Covering arrays of strength two: few rows in which every two values of two axes occur together.
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

// The index of a value, by axis.
using PairwiseRow = std::vector<std::size_t>;

// Two axes, and a value of each.
struct ValuePair {
  std::size_t axis = 0, value = 0, other = 0, of_other = 0;
};

struct PairwiseTable {
  std::vector<PairwiseRow> rows;     // all allowed; the ones that cover most first
  std::vector<ValuePair> forbidden;  // in no row
};

// Rows in which all pairs occur that can; the same for the same axes and seed. Greedy (after Cohen et al., IEEE TSE
// 23(7), 1997): each row begins with a pair that is not covered yet, then axes in random order take the value with most
// new pairs of those that keep the row allowed; the best of several such rows is taken.
// `allowed` judges a whole row; an axis's first value is its neutral one, and the row of all first values is allowed. A
// pair is forbidden where no row is allowed that holds it and differs from the neutral row in at most one more value.
PairwiseTable pairwise_table(const std::vector<Axis>& axes, std::uint64_t seed,
                             const std::function<bool(const PairwiseRow&)>& allowed = {});

// All pairs of values of two axes.
std::size_t count_pairs(const std::vector<Axis>& axes);

// "strategy=server codec=none"; values have no blanks.
std::string text_of(const std::vector<Axis>& axes, const PairwiseRow& row);
std::string text_of(const std::vector<Axis>& axes, const ValuePair& pair);
// The row of such a text; axes that it leaves out have their first value. Throws std::runtime_error for unknown names.
PairwiseRow row_of(const std::vector<Axis>& axes, const std::string& text);

}  // namespace echelon::test
