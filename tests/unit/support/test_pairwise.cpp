// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pairwise.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <set>

#include "tests/support/random.hpp"

namespace echelon::test {
namespace {

std::vector<Axis> axes_of(const std::vector<std::size_t>& sizes) {
  std::vector<Axis> axes;
  for (const std::size_t size : sizes) {
    axes.push_back({.name = "axis" + std::to_string(axes.size()), .values = {}});
    for (std::size_t i = 0; i < size; ++i) axes.back().values.push_back(std::to_string(i));
  }
  return axes;
}

using Pairs = std::set<std::vector<std::size_t>>;

// Collects the covered pairs by looking at every row, without the generator's own records.
Pairs covered(const std::vector<PairwiseRow>& rows) {
  Pairs pairs;
  for (const PairwiseRow& row : rows)
    for (std::size_t a = 0; a < row.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) pairs.insert({a, row[a], b, row[b]});
  return pairs;
}

TEST_CASE("every two values of two axes occur together in a row", "[pairwise]") {
  for (const std::vector<std::size_t>& sizes :
       {std::vector<std::size_t>{2, 2}, {1, 5, 3}, {3, 3, 3, 3}, {10, 9, 4, 4, 3, 3, 2, 2, 2, 1}}) {
    const std::vector<Axis> axes = axes_of(sizes);
    const PairwiseTable table = pairwise_table(axes, test_seed());
    for (const PairwiseRow& row : table.rows) {
      REQUIRE(row.size() == axes.size());
      for (std::size_t a = 0; a < row.size(); ++a) REQUIRE(row[a] < sizes[a]);
    }
    CHECK(table.forbidden.empty());
    CHECK(covered(table.rows).size() == count_pairs(axes));
    CHECK(table.rows.size() <= 2 * std::max(sizes[0] * sizes[1], std::size_t{9}));
    std::printf("%zu pairs of %zu axes in %zu rows\n", count_pairs(axes), axes.size(), table.rows.size());
  }
}

TEST_CASE("pairs that are not allowed are in no row, and all others are", "[pairwise]") {
  const std::vector<Axis> axes = axes_of({6, 4, 3, 3, 2});
  // One value excludes two values of another axis, and one needs a certain value of a third axis.
  const auto allowed = [](const PairwiseRow& row) {
    return !(row[0] == 5 && row[1] >= 2) && !(row[2] == 2 && row[3] != 1);
  };
  const PairwiseTable table = pairwise_table(axes, test_seed(), allowed);
  for (const PairwiseRow& row : table.rows) CHECK(allowed(row));
  Pairs all = covered(table.rows), forbidden;
  for (const ValuePair& p : table.forbidden) forbidden.insert({p.axis, p.value, p.other, p.of_other});
  CHECK(forbidden == Pairs{{1, 2, 0, 5}, {1, 3, 0, 5}, {3, 0, 2, 2}, {3, 2, 2, 2}});
  CHECK(all.size() + forbidden.size() == count_pairs(axes));
}

TEST_CASE("a covering array follows from its seed alone", "[pairwise]") {
  const std::vector<Axis> axes = axes_of({4, 3, 3, 2, 5});
  CHECK(pairwise_table(axes, 7).rows == pairwise_table(axes, 7).rows);
  CHECK(pairwise_table(axes, 7).rows != pairwise_table(axes, 8).rows);
  CHECK(text_of(axes, PairwiseRow{1, 0, 2, 1, 4}) == "axis0=1 axis1=0 axis2=2 axis3=1 axis4=4");
  CHECK(row_of(axes, "axis3=1 axis0=2") == PairwiseRow{2, 0, 0, 1, 0});
  CHECK_THROWS_WITH(row_of(axes, "axis9=1"), "no axis 'axis9'");
}

}  // namespace
}  // namespace echelon::test
