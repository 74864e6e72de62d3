// SPDX-License-Identifier: Apache-2.0
// A layer whose output has more rows than its input (upsampling, transposed convolution) on a spatial shard: from its
// rows of the input it computes whole blocks of output rows, of which the shard has some.
#pragma once

#include "model/splits/row_pieces.hpp"

namespace echelon::inline model {

// The output of the node that is being lowered: its rows are rows [first, first + rows) of `all` computed ones.
class TakenRows {
 public:
  TakenRows(Lowering& lowering, std::int64_t first, std::int64_t all)
      : pieces_(lowering, lowering.output_shape(0)),
        lowering_(lowering),
        rows_(lowering.output_shape(0)[2]),
        first_(first),
        all_(all) {}

  // Forward: the tensor of all rows, which is `to` if the output has them all; then writes the output's rows to `to`.
  TensorRef room(TensorRef to) const { return is_whole() ? to : pieces_.room("all rows", all_).tensor; }
  void take(TensorRef from, TensorRef to) const {
    if (!is_whole()) pieces_.slice({from, all_}, first_, rows_, to);
  }

  // Backward: the gradient of all rows, zero for those that are not in the output.
  TensorRef gradient() const {
    const TensorRef dy = lowering_.grad_output(0);
    if (is_whole()) return dy;
    const std::int64_t rest = all_ - first_ - rows_;
    std::vector<RowPieces::Piece> parts;
    if (first_ > 0) parts.push_back(pieces_.zeros("no rows before", first_));
    parts.push_back({dy, rows_});
    if (rest > 0) parts.push_back(pieces_.zeros("no rows behind", rest));
    return pieces_.joined("d all rows", parts).tensor;
  }

 private:
  bool is_whole() const { return rows_ == all_; }

  RowPieces pieces_;
  Lowering& lowering_;
  std::int64_t rows_, first_, all_;
};

}  // namespace echelon::inline model
