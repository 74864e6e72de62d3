// SPDX-License-Identifier: Apache-2.0
// Tensors (N, C, rows, ..) of one node, sliced and concatenated along their rows, which are the slices of a volume.
// Each function appends ops, for which rows are the channels of N*C samples; `tag` names the kept tensor that it
// writes.
#pragma once

#include <string>
#include <vector>

#include "model/lowering.hpp"

namespace echelon::inline model {

class RowPieces {
 public:
  struct Piece {
    TensorRef tensor = {};
    std::int64_t rows = 0;
  };
  // An addend of a sum: rows [begin, end) of the result come from `piece`, from its row `first` on.
  struct Source {
    Piece piece;
    std::int64_t begin, end, first;
  };

  // `image`: (N, C, any, ..).
  RowPieces(Lowering& lowering, const Shape& image) : lowering_(lowering), image_(image) {}

  Shape shape(std::int64_t rows) const { return image_.with(2, rows); }
  Piece room(const std::string& tag, std::int64_t rows) const;   // a kept tensor with this many rows
  Piece zeros(const std::string& tag, std::int64_t rows) const;  // rows of zeros
  // Rows [first, first + count) of a piece; returns the piece itself if these are all of its rows.
  Piece slice(const std::string& tag, const Piece& from, std::int64_t first, std::int64_t count) const;
  // The same, into `to`.
  void slice(const Piece& from, std::int64_t first, std::int64_t count, TensorRef to) const;
  void join(const std::vector<Piece>& pieces, TensorRef to) const;  // the concatenation, into `to`
  Piece joined(const std::string& tag, const std::vector<Piece>& pieces) const;
  Piece sum(const std::string& tag, const Piece& a, const Piece& b) const;  // for pieces with equal numbers of rows
  // `rows` rows, each the sum of the sources that contain it; zero if none does.
  Piece sum_of(const std::string& tag, const std::vector<Source>& sources, std::int64_t rows) const;

 private:
  std::int64_t row_elems() const { return image_.elems() / (image_[0] * image_[1] * image_[2]); }

  Lowering& lowering_;
  Shape image_;
};

}  // namespace echelon::inline model
