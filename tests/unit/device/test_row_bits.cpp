// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "device/row_bits.hpp"

using namespace echelon;

namespace {

using Runs = std::vector<std::pair<std::int64_t, std::int64_t>>;

Runs runs_of(const std::vector<std::int64_t>& marked, std::int64_t rows) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(row_words(rows)));
  for (std::int64_t row : marked) mark_row(words.data(), row);
  Runs runs;
  for_each_run(words.data(), rows, [&](std::int64_t first, std::int64_t count) { runs.emplace_back(first, count); });
  return runs;
}

}  // namespace

TEST_CASE("marked rows come in order, as runs that go on over words", "[row_bits]") {
  CHECK(runs_of({}, 100) == Runs{});
  CHECK(runs_of({0}, 1) == Runs{{0, 1}});
  CHECK(runs_of({99, 31, 32, 33, 5, 5}, 100) == Runs{{5, 1}, {31, 3}, {99, 1}});
  CHECK(runs_of({31}, 32) == Runs{{31, 1}});
  CHECK(runs_of({63, 64}, 65) == Runs{{63, 2}});
  CHECK(row_words(0) == 0);
  CHECK(row_words(32) == 1);
  CHECK(row_words(33) == 2);
}

TEST_CASE("bits of the row marks behind the last row are ignored", "[row_bits]") {
  const std::vector<std::uint32_t> all(3, ~0U);
  for (std::int64_t rows : {1, 31, 32, 33, 70}) {
    Runs runs;
    for_each_run(all.data(), rows, [&](std::int64_t first, std::int64_t count) { runs.emplace_back(first, count); });
    CHECK(runs == Runs{{0, rows}});
    CHECK(row_marked(all.data(), rows - 1));
  }
}
