// SPDX-License-Identifier: Apache-2.0
#include "model/splits/row_pieces.hpp"

#include <fmt/format.h>

#include <set>

namespace echelon::inline model {

using Piece = RowPieces::Piece;

Piece RowPieces::room(const std::string& tag, std::int64_t rows) const {
  return {lowering_.kept(tag, shape(rows), lowering_.dtype()), rows};
}

Piece RowPieces::zeros(const std::string& tag, std::int64_t rows) const {
  return {lowering_.zeros(tag, shape(rows)), rows};
}

Piece RowPieces::slice(const std::string& tag, const Piece& from, std::int64_t first, std::int64_t count) const {
  if (count == from.rows) return from;
  const Piece to = room(tag, count);
  slice(from, first, count, to.tensor);
  return to;
}

void RowPieces::slice(const Piece& from, std::int64_t first, std::int64_t count, TensorRef to) const {
  const SliceDims dims{image_[0] * image_[1], from.rows, 1, row_elems(), first, count};
  lowering_.op({.kind = OpKind::slice, .dtype = lowering_.dtype(), .dims = dims}, {from.tensor, to});
}

void RowPieces::join(const std::vector<Piece>& pieces, TensorRef to) const {
  ConcatDims dims{.N = image_[0] * image_[1], .H = 1, .W = row_elems(), .channels = {}};
  std::vector<TensorRef> args;
  for (const Piece& piece : pieces) {
    dims.channels[args.size()] = piece.rows;
    args.push_back(piece.tensor);
  }
  args.push_back(to);
  lowering_.op({.kind = OpKind::concat, .dtype = lowering_.dtype(), .dims = dims}, args);
}

Piece RowPieces::joined(const std::string& tag, const std::vector<Piece>& pieces) const {
  std::int64_t rows = 0;
  for (const Piece& piece : pieces) rows += piece.rows;
  const Piece to = room(tag, rows);
  join(pieces, to.tensor);
  return to;
}

Piece RowPieces::sum(const std::string& tag, const Piece& a, const Piece& b) const {
  const Piece to = room(tag, a.rows);
  const OpSpec spec{.kind = OpKind::add, .dtype = lowering_.dtype(), .dims = ElementwiseDims{shape(a.rows)}};
  lowering_.op(spec, {a.tensor, b.tensor, to.tensor});
  return to;
}

// Between two neighbouring bounds of sources all rows have the same sources.
Piece RowPieces::sum_of(const std::string& tag, const std::vector<Source>& sources, std::int64_t rows) const {
  std::set<std::int64_t> ends = {0, rows};
  for (const Source& source : sources) ends.insert({source.begin, source.end});
  std::vector<Piece> pieces;
  for (auto end = std::next(ends.begin()); end != ends.end(); ++end) {
    const std::int64_t begin = *std::prev(end), count = *end - begin;
    Piece total;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const Source& source = sources[i];
      if (begin < source.begin || *end > source.end) continue;
      const auto of = [&](const char* what) { return fmt::format("{} {} {} {}", tag, begin, what, i); };
      const Piece part = slice(of("of"), source.piece, source.first + begin - source.begin, count);
      total = total.rows == 0 ? part : sum(of("with"), total, part);
    }
    pieces.push_back(total.rows > 0 ? total : zeros(fmt::format("{} {} none", tag, begin), count));
  }
  return joined(tag, pieces);
}

}  // namespace echelon::inline model
