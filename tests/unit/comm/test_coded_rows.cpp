// SPDX-License-Identifier: Apache-2.0
// Which values of the arenas travel as rows, and which as they are.
#include "comm/codec/coded_rows.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "exchange/buckets.hpp"
#include "model/zoo/zoo.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using Runs = std::vector<CodedRun>;

// The bytes that encoding a range writes: those that do not depend on what was in the memory before.
std::size_t written_bytes(const ParameterSet& parameters, ArenaRange range) {
  const auto codec = make_codec("onebit", {.rows = coded_rows(parameters, range)});
  const auto n = static_cast<std::size_t>(range.elems());
  std::vector<std::byte> wires[2];
  std::size_t told = 0;
  for (const int i : {0, 1}) {
    wires[i].assign(codec->most_bytes(range.elems()) + 256, std::byte{static_cast<unsigned char>(i == 0 ? 0 : 0xff)});
    const std::vector<double> drawn = test::random_values(n, "values");
    std::vector<float> values(drawn.begin(), drawn.end());
    told = codec->encode({.values = values.data(), .elems = range.elems()}, wires[i].data());
  }
  std::size_t written = wires[0].size();
  while (written > 0 && wires[0][written - 1] != wires[1][written - 1]) --written;
  CHECK(told == written);
  return written;
}

TEST_CASE("rows are those of large tensors; vectors, small tensors and short rows are sent as they are", "[codec]") {
  ParameterSet set;
  set.add("conv1.weight", Shape{6, 1, 5, 5}, {});  // 150 values
  set.add("conv1.bias", Shape{6}, {});
  set.add("conv2.weight", Shape{64, 32, 3, 3}, {});  // rows of 288
  set.add_statistic("norm.mean", Shape{64}, {}, 0.1);
  set.add("fc.weight", Shape{128, 100}, {});
  set.add("depthwise.weight", Shape{800, 1, 2, 3}, {});
  CHECK(coded_rows(set, {0, set.elems()}) == Runs{{156, 0}, {64 * 288, 288}, {64, 64}, {12800, 100}, {4800, 0}});
  // A part of a server that begins and ends inside rows, and one inside a single row.
  const std::int64_t conv = set[2].begin;
  CHECK(coded_rows(set, {conv + 100, conv + 3 * 288 + 7}) == Runs{{188, 188}, {2 * 288, 288}, {7, 7}});
  CHECK(coded_rows(set, {conv + 10, conv + 30}) == Runs{{20, 20}});
  CHECK(coded_rows(set, {conv + 288, conv + 576}) == Runs{{288, 288}});
}

TEST_CASE("tensors that are much of a small model have rows", "[codec]") {
  ParameterSet set;
  set.add("first", Shape{4, 18}, {});
  set.add("second", Shape{10, 100}, {});
  set.add("third", Shape{5, 10}, {});  // less than a sixteenth
  CHECK(coded_rows(set, {0, set.elems()}) == Runs{{72, 18}, {1000, 100}, {50, 0}});
}

TEST_CASE("all rows of a parameter's parts have the values of the parts", "[codec]") {
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

TEST_CASE("the bytes of onebit that are predicted are those of its messages", "[codec]") {
  for (const std::string_view model : {"lenet", "cnn_32_64", "resnet20", "charlstm"}) {
    CAPTURE(model);
    const Graph graph = build_zoo(model, zoo_form(model));
    const ParameterSet& set = graph.parameters();
    std::size_t of_buckets = 0;
    for (const ArenaRange bucket : make_buckets(set, sizeof(float), 100'000)) {
      const std::size_t bytes = onebit_bytes(set, bucket);
      CHECK(bytes == written_bytes(set, bucket));
      of_buckets += bytes;
    }
    CHECK(of_buckets == onebit_bytes(set, {0, set.elems()}));
    // Parts of servers, which begin and end within rows.
    for (const std::int64_t part : {set.elems() / 3, set.elems() / 7 + 1})
      for (std::int64_t begin = 0; begin < set.elems(); begin += part) {
        const ArenaRange range{begin, std::min(begin + part, set.elems())};
        CHECK(onebit_bytes(set, range) == written_bytes(set, range));
      }
  }
}

}  // namespace
}  // namespace echelon
