// SPDX-License-Identifier: Apache-2.0
// Looks up rows of a table by index: y[r] = w[ids[r] - first].
//
// kind                   inputs   outputs
//   embedding_forward    ids w    y
//   embedding_backward   ids dy   dw (adds) [touched (adds)]
//
// ids (rows) i32; y (rows, F); w (V, F): the rows [first, first + V) of a table whose other rows are on other ranks.
// y[r] is 0 if ids[r] is not one of these rows; the loader refuses an id that is not in the table.
//
// With `sparse`, `touched` (row_words(V)) i32 has a bit for each row (device/row_bits.hpp), which is set if dw may hold
// anything but zero there. Overwriting clears only the marked rows and marks those of ids; adding marks these in
// addition. dw and touched are either both overwritten or both added to.
#pragma once

#include <cstdint>

#include "device/op_description.hpp"
#include "device/row_bits.hpp"

namespace echelon::inline device {

struct EmbeddingDims {
  std::int64_t rows, V, F;  // number of ids; rows of the table; values per row
  bool sparse = false;      // backward: clears and marks dw row by row
  std::int64_t first = 0;   // the id of row 0
  friend bool operator==(const EmbeddingDims&, const EmbeddingDims&) = default;

  void common(OpDescription& op) const {
    op.word(std::to_string(rows) + " of V" + std::to_string(V)).extents({{"F", F}});
    op.flag(sparse, "sparse").flag(first > 0, "from", first);
    op.in("ids", {rows}, DType::i32);
    if (sparse) rows_moved(op);
  }
  void embedding_forward(OpDescription& op) const {
    op.in("w", {V, F}).parameter().out("y", {rows, F});
    rows_moved(op);
  }
  void embedding_backward(OpDescription& op) const {
    op.in("dy", {rows, F}).out("dw", {V, F}).adds().wide();
    if (sparse) op.out("touched", {row_words(V)}, DType::i32).adds();
  }

 private:
  // An id, and a row that is read and one that is written.
  void rows_moved(OpDescription& op) const {
    op.traffic_bytes(static_cast<double>(rows * (4 + 2 * F * static_cast<std::int64_t>(size_of(op.dtype())))));
  }
};

}  // namespace echelon::inline device
