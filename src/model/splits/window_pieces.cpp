// SPDX-License-Identifier: Apache-2.0
#include "model/splits/window_pieces.hpp"

#include <algorithm>

namespace echelon::inline model {

namespace {

// a / b rounded down; b is positive.
std::int64_t floor_of(std::int64_t a, std::int64_t b) { return (a - (a < 0 ? b - 1 : 0)) / b; }

}  // namespace

RowSpan rows_seen(const RowWindow& window, const RowSpan& output) {
  const auto first = [&](std::int64_t row) { return row * window.stride - window.padding; };
  const auto last = [&](std::int64_t row) { return first(row) + window.reach - 1; };
  const std::int64_t nearest = floor_of(first(output.begin) + window.up - 1, window.up);
  return {std::min(nearest, floor_of(last(output.begin), window.up)), floor_of(last(output.end - 1), window.up) + 1};
}

WindowPieces window_pieces(const SpatialShardWindows& w) {
  const auto begin_of = [&](std::int64_t output) { return w.first + output * w.stride; };
  // Outputs [from, to) read only own rows. At an end without a halo, own rows reach to the end.
  std::int64_t from = 0, to = w.outputs;
  if (w.x.begin < 0) from = (std::max<std::int64_t>(0, -w.first) + w.stride - 1) / w.stride;
  if (w.x.end > w.own) to = std::max<std::int64_t>(0, w.own - w.reach - w.first + w.stride) / w.stride;
  // A stride longer than the reach may begin the rest with rows that are not used.
  if (from >= to || (to < w.outputs && begin_of(to) > w.own)) return {{}, {{0, w.outputs}, w.x}, {}};
  WindowPieces pieces;
  pieces.inside = {{from, to}, {from > 0 ? begin_of(from) : w.x.begin, std::min(w.x.end, w.own)}};
  const std::int64_t above_end = std::max<std::int64_t>(0, begin_of(from - 1) + w.reach);
  if (from > 0) pieces.above = {{0, from}, {w.x.begin, std::min(above_end, w.x.end)}};
  if (to < w.outputs) pieces.below = {{to, w.outputs}, {std::max(begin_of(to), w.x.begin), w.x.end}};
  return pieces;
}

}  // namespace echelon::inline model
