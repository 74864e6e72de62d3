// SPDX-License-Identifier: Apache-2.0
// The rows of a spatial shard's output that wait for neighbours' rows, compared with a count row by row.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/splits/window_pieces.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using test::random_integers;

bool is_empty(const WindowPiece& piece) { return piece.y.count() == 0; }

TEST_CASE("the windows of a spatial shard in three pieces, by hand", "[model][space]") {
  // A 3x3 window takes a row of either neighbour.
  WindowPieces pieces = window_pieces({.reach = 3, .stride = 1, .first = -1, .outputs = 8, .own = 8, .x = {-1, 9}});
  CHECK(pieces.above == WindowPiece{{0, 1}, {-1, 2}});
  CHECK(pieces.inside == WindowPiece{{1, 7}, {0, 8}});
  CHECK(pieces.below == WindowPiece{{7, 8}, {6, 9}});
  // With stride 2 nothing comes from below, and no inside window reads the first row.
  pieces = window_pieces({.reach = 3, .stride = 2, .first = -1, .outputs = 4, .own = 8, .x = {-1, 8}});
  CHECK(pieces.above == WindowPiece{{0, 1}, {-1, 2}});
  CHECK(pieces.inside == WindowPiece{{1, 4}, {1, 8}});
  CHECK(is_empty(pieces.below));
  // A pool at the upper edge of the image pads by itself.
  pieces = window_pieces({.reach = 3, .stride = 2, .first = -1, .outputs = 4, .own = 7, .x = {0, 8}});
  CHECK(is_empty(pieces.above));
  CHECK(pieces.inside == WindowPiece{{0, 3}, {0, 7}});
  CHECK(pieces.below == WindowPiece{{3, 4}, {5, 8}});
  // There is one own row, which all windows exceed: all rows are computed at once.
  pieces = window_pieces({.reach = 3, .stride = 1, .first = -1, .outputs = 1, .own = 1, .x = {-1, 2}});
  CHECK(pieces.inside == WindowPiece{{0, 1}, {-1, 2}});
  CHECK((is_empty(pieces.above) && is_empty(pieces.below)));
  // The same happens if the last window begins behind a row from below that no window reads.
  pieces = window_pieces({.reach = 1, .stride = 3, .first = 0, .outputs = 3, .own = 5, .x = {0, 7}});
  CHECK(pieces.inside == WindowPiece{{0, 3}, {0, 7}});
}

// Returns the output rows that need no row above or below the own ones, where such rows come.
std::vector<std::int64_t> inner_rows(const SpatialShardWindows& w) {
  std::vector<std::int64_t> rows;
  for (std::int64_t output = 0; output < w.outputs; ++output) {
    const std::int64_t begin = w.first + output * w.stride;
    if (w.x.begin < 0 && begin < 0) continue;
    if (w.x.end > w.own && begin + w.reach > w.own) continue;
    rows.push_back(output);
  }
  return rows;
}

void check_pieces(const SpatialShardWindows& w, std::int64_t& apart) {
  const WindowPieces pieces = window_pieces(w);
  std::int64_t next = 0;
  for (const WindowPiece* piece : {&pieces.above, &pieces.inside, &pieces.below}) {
    if (is_empty(*piece)) continue;
    CHECK(piece->y.begin == next);
    next = piece->y.end;
    // A piece's rows are those of its windows, as far as they exist, and at most a stride less one behind them.
    const std::int64_t begin = w.first + piece->y.begin * w.stride;
    const std::int64_t end = w.first + (piece->y.end - 1) * w.stride + w.reach;
    CHECK(piece->x.begin == std::max(begin, w.x.begin));
    CHECK(piece->x.end >= std::min(end, w.x.end));
    CHECK(piece->x.end <= std::min(end + w.stride - 1, w.x.end));
    // The rows from one side are all in the piece, or none are.
    CHECK((piece->x.begin >= 0 || piece->x.begin == w.x.begin));
    CHECK((piece->x.end <= w.own || piece->x.end == w.x.end));
  }
  CHECK(next == w.outputs);
  const auto inner = inner_rows(w);
  if (is_empty(pieces.above) && is_empty(pieces.below)) {
    const bool all = static_cast<std::int64_t>(inner.size()) == w.outputs;
    CHECK((all || inner.empty() || w.first + (inner.back() + 1) * w.stride > w.own));
    return;
  }
  ++apart;
  REQUIRE_FALSE(inner.empty());
  CHECK(pieces.inside.y == RowSpan{inner.front(), inner.back() + 1});
  CHECK((pieces.inside.x.begin >= 0 && pieces.inside.x.end <= w.own));
}

TEST_CASE("the windows of a spatial shard in three pieces: every row once, as many as can inside", "[model][space]") {
  std::int64_t apart = 0;
  for (std::int64_t round = 0; round < 4000; ++round) {
    const auto numbers = random_integers(8, 0, 1000, "windows " + std::to_string(round));
    SpatialShardWindows w{
        .reach = 1 + numbers[0] % 5, .stride = 1 + numbers[1] % 3, .outputs = 1 + numbers[2] % 9, .x = {}};
    w.first = numbers[3] % (w.reach + 2) - w.reach;
    const std::int64_t end = w.first + (w.outputs - 1) * w.stride + w.reach;
    w.own = std::max<std::int64_t>(1, end - numbers[4] % 4);
    // Rows come from a neighbour where windows exceed the own ones, except padding at the image's edges.
    w.x.begin = w.first < 0 && numbers[5] % 3 == 0 ? 0 : w.first;
    w.x.end = end > w.own && numbers[6] % 3 == 0 ? w.own : end;
    if (end < w.own && w.own - end < w.stride) w.x.end = w.own;
    if (w.x.count() < 1 || w.x.begin > w.own) continue;
    INFO("reach " << w.reach << " stride " << w.stride << " first " << w.first << " outputs " << w.outputs << " own "
                  << w.own << " x " << w.x.begin << " " << w.x.end);
    check_pieces(w, apart);
  }
  CHECK(apart > 500);
}

}  // namespace
}  // namespace echelon
