// SPDX-License-Identifier: Apache-2.0
// Determines the output rows of a spatial shard that depend only on its own input rows and can be computed while the
// halo is transferred. Pure functions.
#pragma once

#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

struct RowSpan {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
  friend bool operator==(const RowSpan&, const RowSpan&) = default;
  friend auto operator<=>(const RowSpan&, const RowSpan&) = default;
};

// The input rows that these output rows read, [begin * stride - padding, (end - 1) * stride - padding + reach):
// negative ones and those beyond the image are padding. With `up` they begin with a row that is not behind the first
// output row.
RowSpan rows_seen(const RowWindow& window, const RowSpan& output);

// Output rows y of a spatial shard and the input rows x that they read. In x, [0, own) are the shard's own rows; rows
// before and behind them are received from neighbours or are padding.
struct WindowPiece {
  RowSpan y, x;
  friend bool operator==(const WindowPiece&, const WindowPiece&) = default;
};

// The windows of a spatial shard. The first one begins at row `first`, which is before x.begin if the layer pads by
// itself (RowWindow::pads).
struct SpatialShardWindows {
  std::int64_t reach = 1, stride = 1, first = 0;
  std::int64_t outputs = 0, own = 0;
  RowSpan x;  // all input rows: own, received and padding
};

struct WindowPieces {
  WindowPiece above, inside,
      below;  // `above` reads rows before the own ones, `below` behind them; empty y: no such piece
};
// All output rows are `inside` if none depends only on own rows.
WindowPieces window_pieces(const SpatialShardWindows& windows);

}  // namespace echelon::inline model
