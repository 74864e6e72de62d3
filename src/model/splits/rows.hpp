// Rows of images that several ranks share (parallel/space.hpp): what a spatial shard of them needs from its neighbours.
#pragma once

#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

// What passes between a spatial shard and the one above or below it. Cuts have a direction: in one of them rows come
// and their gradients go back, in the other it is the other way round.
struct RowsSide {
  int out_cut = -1, in_cut = -1;
  std::int64_t out = 0, in = 0;  // rows; out: those next to that side
  std::int64_t padding = 0;      // rows of zeros behind those that come
  std::int64_t rows() const { return in + padding; }
};

// (C, rows, W) -> (C, padding + rows from above + own rows [first, end) + rows from below + padding, W).
struct RowsFetch {
  RowsSide above, below;
  std::int64_t first = 0, end = 0;
};

LayerPtr make_rows(const RowsFetch& fetch);
// Rows `rows` of what `layer`, a layer of windows, gives, of what make_rows would give it; the first window begins at
// own row `first`. Where tensors travel beside ops (Lowering::travels_beside_ops), rows that see nothing of the
// neighbours' are computed meanwhile, and so are their gradients.
LayerPtr make_rows_window(LayerPtr layer, const RowsFetch& fetch, const Units& rows, std::int64_t first);
// Whole images, of which the input is these rows; backward, this rank's rows of the gradient.
LayerPtr make_gather_rows(int cut, const Units& rows);

}  // namespace echelon::inline model
