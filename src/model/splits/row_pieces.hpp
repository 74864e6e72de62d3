// Tensors (N, C, rows, W) of one node, cut and joined by rows. To the ops rows are the channels of N*C samples.
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
  // Rows [begin, end) of what is put together are rows of a piece, from `first` on.
  struct Source {
    Piece piece;
    std::int64_t begin, end, first;
  };

  // `image` gives N, C and W.
  RowPieces(Lowering& lowering, const Shape& image) : lowering_(lowering), image_(image) {}

  Shape shape(std::int64_t rows) const { return {image_[0], image_[1], rows, image_[3]}; }
  Piece room(const std::string& tag, std::int64_t rows) const;
  Piece zeros(const std::string& tag, std::int64_t rows) const;
  // Rows [first, first + count); the piece itself where these are all.
  Piece slice(const std::string& tag, const Piece& from, std::int64_t first, std::int64_t count) const;
  void join(const std::vector<Piece>& pieces, TensorRef to) const;
  Piece joined(const std::string& tag, const std::vector<Piece>& pieces) const;
  Piece sum(const std::string& tag, const Piece& a, const Piece& b) const;
  // Each of `rows` rows is the sum of all sources that have it, or zero.
  Piece sum_of(const std::string& tag, const std::vector<Source>& sources, std::int64_t rows) const;

 private:
  Lowering& lowering_;
  Shape image_;
};

}  // namespace echelon::inline model
