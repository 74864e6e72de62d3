// Which values of the arenas travel as rows, and which travel unchanged.
#include "exchange/coded_rows.hpp"

#include <catch2/catch.hpp>

namespace echelon {
namespace {

using Runs = std::vector<CodedRun>;

TEST_CASE("rows are those of large tensors; vectors, small tensors and short rows are sent as they are", "[exchange]") {
  ParameterSet set;
  set.add("conv1.weight", Shape{6, 1, 5, 5}, {});  // 150 values
  set.add("conv1.bias", Shape{6}, {});
  set.add("conv2.weight", Shape{64, 32, 3, 3}, {});  // rows of 288
  set.add_statistic("norm.mean", Shape{64}, {}, 0.1);
  set.add("fc.weight", Shape{128, 100}, {});
  set.add("depthwise.weight", Shape{800, 1, 2, 3}, {});
  CHECK(coded_rows(set, {0, set.elems()}) == Runs{{156, 0}, {64 * 288, 288}, {64, 64}, {12800, 100}, {4800, 0}});
  // A server's part may begin and end inside rows, or lie inside a single row.
  const std::int64_t conv = set[2].begin;
  CHECK(coded_rows(set, {conv + 100, conv + 3 * 288 + 7}) == Runs{{188, 188}, {2 * 288, 288}, {7, 7}});
  CHECK(coded_rows(set, {conv + 10, conv + 30}) == Runs{{20, 20}});
  CHECK(coded_rows(set, {conv + 288, conv + 576}) == Runs{{288, 288}});
}

TEST_CASE("tensors that are much of a small model have rows", "[exchange]") {
  ParameterSet set;
  set.add("first", Shape{4, 18}, {});
  set.add("second", Shape{10, 100}, {});
  set.add("third", Shape{5, 10}, {});  // has less than a sixteenth of the values
  CHECK(coded_rows(set, {0, set.elems()}) == Runs{{72, 18}, {1000, 100}, {50, 0}});
}

TEST_CASE("all rows of a parameter's parts have the values of the parts", "[exchange]") {
  ParameterSet set;
  set.add("a", Shape{70, 61}, {});
  set.add("b", Shape{3000}, {});
  set.add("c", Shape{17, 300}, {});
  for (std::int64_t begin = 0; begin < set.elems(); begin += 97)
    for (std::int64_t end = begin + 1; end <= set.elems(); end += 411) {
      std::int64_t sum = 0;
      for (const CodedRun& run : coded_rows(set, {begin, end})) {
        sum += run.elems;
        CHECK((run.row == 0 || run.elems % run.row == 0));
      }
      REQUIRE(sum == end - begin);
    }
}

}  // namespace
}  // namespace echelon
