// SPDX-License-Identifier: Apache-2.0
// A convolution or pool on the rows of a spatial shard. On devices that do not compute on the host's cores it runs in
// three pieces: the rows that read only own rows, while the halo is transferred, then the rows at both ends. On the
// host's cores, which also copy the halo, three pieces cost more than the wait that they hide: all rows run at once,
// after the transfer. Own rows and halo are joined anew in the backward pass, because keeping them joined would take
// the memory of the input a second time.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "model/splits/halo.hpp"
#include "model/splits/piece_lowering.hpp"
#include "model/splits/row_pieces.hpp"
#include "model/splits/rows.hpp"
#include "model/splits/window_pieces.hpp"

namespace echelon::inline model {
namespace {

using Piece = RowPieces::Piece;

class RowsWindow final : public SplittableLayer {
 public:
  RowsWindow(LayerPtr layer, const RowsFetch& fetch, const Units& rows, std::int64_t first)
      : layer_(std::move(layer)), f_(fetch), rows_(rows), first_(first) {}
  std::string_view kind() const override { return layer_->kind(); }
  std::string attributes(std::span<const Shape> inputs) const override {
    return layer_->attributes(inputs) + " on rows " + rows_text(f_);
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    const Shape seen = with_halo(inputs[0], f_);
    return layer_split(*layer_).on_rows(rows_, -1)->infer({&seen, 1});
  }
  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    return layer_->parameters(inputs);
  }
  std::vector<ParameterSlice> slices(std::span<const Shape> inputs) const override {
    return layer_split(*layer_).slices(inputs);
  }
  LayerPtr with_outputs(const Units& units) const override {
    return on_these_rows(layer_split(*layer_).with_outputs(units));
  }
  LayerPtr behind_relu() const override { return on_these_rows(layer_->behind_relu()); }

  void forward(Lowering& lowering) const override {
    const Halo halo(lowering, f_);
    halo.send_rows();
    const WindowPieces pieces = pieces_in(lowering);
    const Piece inside = forward_piece(lowering, halo, kInside, pieces.inside);
    const Piece above = forward_piece(lowering, halo, kAbove, pieces.above);
    const Piece below = forward_piece(lowering, halo, kBelow, pieces.below);
    std::vector<Piece> outputs;
    for (const Piece& piece : {above, inside, below})
      if (piece.rows > 0) outputs.push_back(piece);
    if (outputs.size() > 1) RowPieces(lowering, lowering.output_shape(0)).join(outputs, lowering.output(0));
  }

  void backward(Lowering& lowering) const override {
    const Halo halo(lowering, f_);
    const std::int64_t own = lowering.input_shape(0)[2];
    const bool learns = lowering.wants_grad_input(0);
    const WindowPieces pieces = pieces_in(lowering);
    std::vector<RowPieces::Source> sources;
    const auto add = [&](Number number, const WindowPiece& piece) {
      if (piece.y.count() == 0) return;
      const Piece dx = backward_piece(lowering, halo, number, piece);
      if (!learns) return;
      if (piece.x.begin < 0) halo.send_back_above(dx, f_.above.padding);
      if (piece.x.end > own) halo.send_back_below(dx, own - piece.x.begin);
      const RowSpan mine = {std::max<std::int64_t>(0, piece.x.begin), std::min(own, piece.x.end)};
      if (mine.count() > 0) sources.push_back({dx, mine.begin, mine.end, mine.begin - piece.x.begin});
    };
    add(kAbove, pieces.above);
    add(kBelow, pieces.below);
    add(kInside, pieces.inside);
    if (!learns) return;
    for (const RowPieces::Source& source : halo.gradients_of_sent()) sources.push_back(source);
    lowering.give_gradient(0, RowPieces(lowering, lowering.input_shape(0)).sum_of("d own", sources, own).tensor);
  }

 private:
  enum Number : int { kInside, kAbove, kBelow };

  LayerPtr on_these_rows(LayerPtr layer) const {
    return layer ? std::make_shared<RowsWindow>(std::move(layer), f_, rows_, first_) : nullptr;
  }

  WindowPieces pieces_in(const Lowering& lowering) const {
    const RowWindow window = *layer_split(*layer_).row_window();
    const RowSpan x = {f_.first - f_.above.rows(), f_.end + f_.below.rows()}, y = {0, rows_.count()};
    if (!lowering.travels_beside_ops() || f_.above.in + f_.below.in == 0) return {{}, {y, x}, {}};
    return window_pieces({.reach = window.reach,
                          .stride = window.stride,
                          .first = first_,
                          .outputs = rows_.count(),
                          .own = lowering.input_shape(0)[2],
                          .x = x});
  }

  Piece forward_piece(Lowering& lowering, const Halo& halo, Number number, const WindowPiece& piece) const {
    if (piece.y.count() == 0) return {};
    std::vector<Piece> above, below;
    if (piece.x.begin < 0) above = halo.from_above();
    if (piece.x.end > lowering.input_shape(0)[2]) below = halo.from_below();
    const Piece x = rows_of(lowering, tag("x", number), piece.x, above, below);
    const Piece y = piece.y.count() == rows_.count()
                        ? Piece{lowering.output(0), rows_.count()}
                        : RowPieces(lowering, lowering.output_shape(0)).room(tag("y", number), piece.y.count());
    PieceLowering::Ends of = ends(lowering, x.rows, y);
    of.x = [x] { return x.tensor; };
    PieceLowering part(lowering, number, std::move(of));
    layer_of(piece)->forward(part);
    return y;
  }

  // Returns the gradient of x, if Lowering::wants_grad_input.
  Piece backward_piece(Lowering& lowering, const Halo& halo, Number number, const WindowPiece& piece) const {
    const RowPieces x(lowering, lowering.input_shape(0)), y(lowering, lowering.output_shape(0));
    const Piece dy =
        y.slice(tag("dy", number), {lowering.grad_output(0), rows_.count()}, piece.y.begin, piece.y.count());
    PieceLowering::Ends of = ends(lowering, piece.x.count(), dy);
    of.x = [&] {
      return rows_of(lowering, tag("x again", number), piece.x, halo.kept_above(), halo.kept_below()).tensor;
    };
    of.dy = dy.tensor;
    Piece dx;
    if (lowering.wants_grad_input(0)) dx = x.room(tag("dx", number), piece.x.count());
    of.dx = dx.tensor;
    PieceLowering part(lowering, number, std::move(of));
    layer_of(piece)->backward(part);
    return dx;
  }

  LayerPtr layer_of(const WindowPiece& piece) const {
    return layer_split(*layer_).on_rows({rows_.begin + piece.y.begin, rows_.begin + piece.y.end, rows_.all}, -1);
  }

  // The rows of x that a piece reads, own ones between those above and below.
  static Piece rows_of(Lowering& lowering, const std::string& tag, const RowSpan& span, const std::vector<Piece>& above,
                       const std::vector<Piece>& below) {
    const RowPieces x(lowering, lowering.input_shape(0));
    const Piece own{lowering.input(0), lowering.input_shape(0)[2]};
    if (span.begin >= 0 && span.end <= own.rows) return x.slice(tag, own, span.begin, span.count());
    std::vector<Piece> parts;
    if (span.begin < 0) parts = above;
    const RowSpan mine = {std::max<std::int64_t>(0, span.begin), std::min(own.rows, span.end)};
    if (mine.count() > 0) parts.push_back(x.slice("own of " + tag, own, mine.begin, mine.count()));
    if (span.end > own.rows) parts.insert(parts.end(), below.begin(), below.end());
    return x.joined(tag, parts);
  }

  static std::string tag(const char* what, Number number) {
    return fmt::format("{} of piece {}", what, static_cast<int>(number));
  }
  static PieceLowering::Ends ends(Lowering& lowering, std::int64_t rows, const Piece& y) {
    const RowPieces xs(lowering, lowering.input_shape(0)), ys(lowering, lowering.output_shape(0));
    return {.x = {}, .y = y.tensor, .dx = {}, .dy = {}, .x_shape = xs.shape(rows), .y_shape = ys.shape(y.rows)};
  }

  LayerPtr layer_;
  RowsFetch f_;
  Units rows_;
  std::int64_t first_;
};

}  // namespace

LayerPtr make_rows_window(LayerPtr layer, const RowsFetch& fetch, const Units& rows, std::int64_t first) {
  return std::make_shared<RowsWindow>(std::move(layer), fetch, rows, first);
}

}  // namespace echelon::inline model
