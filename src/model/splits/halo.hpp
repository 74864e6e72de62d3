// What a node of a spatial shard exchanges with the spatial shards above and below it, in the order in which it asks
// for that.
#pragma once

#include <string>
#include <vector>

#include "model/splits/row_pieces.hpp"
#include "model/splits/rows.hpp"

namespace echelon::inline model {

// Of input 0 of the node that is being lowered.
class Halo {
 public:
  using Piece = RowPieces::Piece;

  Halo(Lowering& lowering, const RowsFetch& fetch)
      : lowering_(lowering), f_(fetch), rows_(lowering, lowering.input_shape(0)), own_(lowering.input_shape(0)[2]) {}

  // Forward. Sends do not block.
  void send_rows() const;
  std::vector<Piece> from_above() const;  // padding, then rows
  std::vector<Piece> from_below() const;  // rows, then padding

  // Backward: of the rows that came, as they lie in a piece from row `first` on; and, waiting, of those that went.
  void send_back_above(const Piece& gradient, std::int64_t first) const;
  void send_back_below(const Piece& gradient, std::int64_t first) const;
  std::vector<RowPieces::Source> gradients_of_sent() const;

 private:
  void send(const std::string& tag, int cut, const Piece& from, std::int64_t first, std::int64_t count) const;
  Piece received(const std::string& tag, int cut, std::int64_t count) const;

  Lowering& lowering_;
  const RowsFetch& f_;
  RowPieces rows_;
  std::int64_t own_;
};

// The shape of a sample with the rows that are fetched.
Shape with_halo(const Shape& sample, const RowsFetch& fetch);
// "1 + 16 + 1": rows from above, own ones, from below.
std::string rows_text(const RowsFetch& fetch);

}  // namespace echelon::inline model
