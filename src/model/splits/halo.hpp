// SPDX-License-Identifier: Apache-2.0
// The exchange of halos: the rows that a node of one spatial shard sends to and receives from the spatial shards above
// and below it. Each call appends transfers and ops to the pass, in the order of the calls.
#pragma once

#include <string>
#include <vector>

#include "model/splits/row_pieces.hpp"
#include "model/splits/rows.hpp"

namespace echelon::inline model {

// The halo of input 0, (N, C, rows, ..), of the node that is being lowered.
class Halo {
 public:
  using Piece = RowPieces::Piece;

  Halo(Lowering& lowering, const RowsFetch& fetch)
      : lowering_(lowering), f_(fetch), rows_(lowering, lowering.input_shape(0)), own_(lowering.input_shape(0)[2]) {}

  // Forward. Sends do not block; from_above and from_below wait for the neighbour.
  void send_rows() const;
  std::vector<Piece> from_above() const;  // rows of padding, then received rows
  std::vector<Piece> from_below() const;  // received rows, then rows of padding
  // Backward: the same rows, which are kept.
  std::vector<Piece> kept_above() const;
  std::vector<Piece> kept_below() const;

  // Backward. Returns the gradients of received rows, which begin at row `first` of `gradient`, to the neighbour.
  void send_back_above(const Piece& gradient, std::int64_t first) const;
  void send_back_below(const Piece& gradient, std::int64_t first) const;
  // Receives the gradients of the rows that send_rows sent, as addends of the gradient of input 0; waits.
  std::vector<RowPieces::Source> gradients_of_sent() const;

 private:
  void send(const std::string& tag, int cut, const Piece& from, std::int64_t first, std::int64_t count) const;
  Piece received(const std::string& tag, int cut, std::int64_t count) const;

  Lowering& lowering_;
  const RowsFetch& f_;
  RowPieces rows_;
  std::int64_t own_;
};

// (C, own rows [first, end) with padding and received rows around them, ..) of a sample (C, rows, ..).
Shape with_halo(const Shape& sample, const RowsFetch& fetch);
// "1 + 16 + 1": rows above, own rows, rows below.
std::string rows_text(const RowsFetch& fetch);

}  // namespace echelon::inline model
