// Which of a spatial shard's output rows see its own rows alone: what can be computed while the neighbours' rows
// travel.
#pragma once

#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

struct RowSpan {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
  friend bool operator==(const RowSpan&, const RowSpan&) = default;
  friend auto operator<=>(const RowSpan&, const RowSpan&) = default;
};

// Rows of the input that these rows of the output look at; outside of the image lies padding.
RowSpan rows_seen(const RowWindow& window, const RowSpan& output);

// Rows y of a spatial shard's output and the rows x of its input at which they look: [0, own) are the spatial shard's,
// those before and behind them come from the neighbours or are padding.
struct WindowPiece {
  RowSpan y, x;
  friend bool operator==(const WindowPiece&, const WindowPiece&) = default;
};

// A spatial shard's windows: the first begins at row `first` of x, which may lie before all rows there are where layers
// pad.
struct SpatialShardWindows {
  std::int64_t reach = 1, stride = 1, first = 0;
  std::int64_t outputs = 0, own = 0;
  RowSpan x;  // all rows there are for them
};

struct WindowPieces {
  WindowPiece above, inside, below;  // above: sees rows before own ones; below: behind them; none of y: not there
};
// All outputs as `inside`, where none sees own rows alone.
WindowPieces window_pieces(const SpatialShardWindows& windows);

}  // namespace echelon::inline model
