// SPDX-License-Identifier: Apache-2.0
// Nodes of a spatial shard (parallel/space.hpp), which has some rows of each image (C, rows, W), or slices of each
// volume (C, slices, H, W), and fetches the halo, the rows that its windows read beyond them, from its neighbours. Rows
// are positions along the first spatial axis; everything behind it is one contiguous block.
#pragma once

#include "model/splits/layer_split.hpp"

namespace echelon::inline model {

// The exchange with the spatial shard above or below. Each cut has a direction: at out_cut own rows are sent and their
// gradients received, at in_cut rows are received and their gradients sent. -1: nothing is exchanged.
struct RowsSide {
  int out_cut = -1, in_cut = -1;
  std::int64_t out = 0, in = 0;  // numbers of rows; those sent are the outermost own rows of this side
  std::int64_t padding = 0;      // rows of zeros beyond the received ones, at the edge of the image
  std::int64_t rows() const { return in + padding; }
};

// (C, rows, ..) -> (C, padding + rows from above + own rows [first, end) + rows from below + padding, ..).
struct RowsFetch {
  RowsSide above, below;
  std::int64_t first = 0, end = 0;
};

LayerPtr make_rows(const RowsFetch& fetch);
// make_rows and `layer`, whose row_window is in_pieces, as one node: computes the rows `rows` of the layer's output
// from this shard's rows of its input. `first`: the own row at which the window of the first output row begins;
// negative above the own rows. If transfers overlap with ops (Lowering::travels_beside_ops), output rows that read only
// own rows are computed while the halo is in flight, and the backward pass does the same.
LayerPtr make_rows_window(LayerPtr layer, const RowsFetch& fetch, const Units& rows, std::int64_t first);
// (C, rows.count(), ..) -> (C, rows.all, ..): gathers the whole image at `cut`; backward, the own rows of the gradient.
LayerPtr make_gather_rows(int cut, const Units& rows);

}  // namespace echelon::inline model
