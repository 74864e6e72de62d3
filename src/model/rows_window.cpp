// A layer of windows on a band's rows. Where devices work by themselves it runs in three pieces: rows that see nothing
// of the neighbours', while these travel, then those at either end. On the host's own cores, which bring the rows too,
// three pieces cost more than the wait that they hide: all rows at once, behind it.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/check.hpp"
#include "model/halo.hpp"
#include "model/row_pieces.hpp"
#include "model/rows.hpp"

namespace echelon {
namespace {

using Piece = RowPieces::Piece;

// A node's lowering as the layer sees it for one piece.
class PieceLowering final : public Lowering {
 public:
  struct Ends {
    TensorRef x, y, dx, dy;
    Shape x_shape, y_shape;
  };
  PieceLowering(Lowering& node, int number, Ends ends) : node_(node), number_(number), ends_(std::move(ends)) {}

  std::int64_t batch() const override { return node_.batch(); }
  bool training() const override { return node_.training(); }
  DType dtype() const override { return node_.dtype(); }
  bool travels_beside_ops() const override { return node_.travels_beside_ops(); }
  int inputs() const override { return 1; }
  Shape input_shape(int) const override { return ends_.x_shape; }
  Shape output_shape(int) const override { return ends_.y_shape; }
  TensorRef input(int) override { return ends_.x; }
  TensorRef output(int) override { return ends_.y; }
  bool wants_grad_input(int i) const override { return node_.wants_grad_input(i); }
  TensorRef grad_input(int) override { return ends_.dx; }
  TensorRef grad_output(int) override { return ends_.dy; }
  bool has_grad_output(int) const override { return true; }
  TensorRef parameter(int j) override { return node_.parameter(j); }
  TensorRef grad_parameter(int j) override { return node_.grad_parameter(j); }
  TensorRef row_marks(int j) override { return node_.row_marks(j); }
  TensorRef kept(std::string_view tag, const Shape& shape, DType dtype) override {
    return node_.kept(fmt::format("{} {}", tag, number_), shape, dtype);
  }
  void op(const OpSpec& spec, const std::vector<TensorRef>& args, ScaleSource scale, int pair) override {
    node_.op(spec, args, scale, pair < 0 ? pair : 3 * pair + number_);
  }
  TensorRef state(std::string_view, const Shape&) override { unlike_a_window(); }
  void alias(int, int) override { unlike_a_window(); }
  void share(int, int) override { unlike_a_window(); }
  void pass_gradient(int, int) override { unlike_a_window(); }
  void give_gradient(int, TensorRef) override { unlike_a_window(); }
  TensorRef constant(std::string_view, const Shape&, Constant) override { unlike_a_window(); }
  void sum_over_replicas(TensorRef) override { unlike_a_window(); }
  void count_cells(std::int64_t) override { unlike_a_window(); }
  void transfer(int, TensorRef, TensorRef, bool) override { unlike_a_window(); }

 private:
  [[noreturn]] static void unlike_a_window() {
    ECHELON_CHECK(false, "a layer of windows does not ask for this");
    std::abort();
  }

  Lowering& node_;
  int number_;
  Ends ends_;
};

class RowsWindow final : public Layer {
 public:
  RowsWindow(LayerPtr layer, const RowsFetch& fetch, std::int64_t reach)
      : layer_(std::move(layer)), f_(fetch), reach_(reach) {}
  std::string_view kind() const override { return layer_->kind(); }
  std::string attributes() const override { return layer_->attributes() + " on rows " + rows_text(f_); }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    ECHELON_CHECK(f_.first == 0 && f_.end == inputs[0][1], "all own rows are taken");
    const Shape seen = with_halo(inputs[0], f_);
    return layer_->infer({&seen, 1});
  }
  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    return layer_->parameters(inputs);
  }
  LayerPtr with_outputs(const Units& units) const override {
    LayerPtr part = layer_->with_outputs(units);
    return part ? std::make_shared<RowsWindow>(std::move(part), f_, reach_) : nullptr;
  }

  void forward(Lowering& lowering) const override {
    const Halo halo(lowering, f_);
    RowPieces x(lowering, lowering.input_shape(0)), y(lowering, lowering.output_shape(0));
    const Piece own{lowering.input(0), lowering.input_shape(0)[2]};
    halo.send_rows();
    if (at_once(lowering)) {
      std::vector<Piece> pieces = halo.from_above();
      pieces.push_back(own);
      for (const Piece& piece : halo.from_below()) pieces.push_back(piece);
      const Piece all = x.joined("x", pieces);
      return forward_piece(lowering, kInside, all, {lowering.output(0), lowering.output_shape(0)[2]});
    }
    const Piece middle = y.room("y inside", inside(own.rows));
    forward_piece(lowering, kInside, own, middle);
    std::vector<Piece> outputs;
    if (f_.above.rows() > 0) {
      std::vector<Piece> pieces = halo.from_above();
      if (reach_ > 1) pieces.push_back(x.slice("first", own, 0, reach_ - 1));
      outputs.push_back(y.room("y above", f_.above.rows()));
      forward_piece(lowering, kAbove, x.joined("x above", pieces), outputs.back());
    }
    outputs.push_back(middle);
    if (f_.below.rows() > 0) {
      std::vector<Piece> pieces;
      if (reach_ > 1) pieces.push_back(x.slice("last", own, own.rows - reach_ + 1, reach_ - 1));
      for (const Piece& piece : halo.from_below()) pieces.push_back(piece);
      outputs.push_back(y.room("y below", f_.below.rows()));
      forward_piece(lowering, kBelow, x.joined("x below", pieces), outputs.back());
    }
    y.join(outputs, lowering.output(0));
  }

  void backward(Lowering& lowering) const override {
    const Halo halo(lowering, f_);
    RowPieces x(lowering, lowering.input_shape(0)), y(lowering, lowering.output_shape(0));
    const bool learns = lowering.wants_grad_input(0);
    const std::int64_t own = lowering.input_shape(0)[2], above = f_.above.rows(), below = f_.below.rows();
    const Piece dy{lowering.grad_output(0), lowering.output_shape(0)[2]};
    std::vector<RowPieces::Source> sources;
    if (at_once(lowering)) {
      const Piece dx = backward_piece(lowering, kInside, x.room("x", above + own + below), dy);
      if (learns) {
        halo.send_back_above(dx, f_.above.padding);
        halo.send_back_below(dx, above + own);
      }
      sources.push_back({dx, 0, own, above});
    } else {
      const std::int64_t edge = reach_ - 1;
      if (above > 0) {
        const Piece dx =
            backward_piece(lowering, kAbove, x.room("x above", above + edge), y.slice("dy above", dy, 0, above));
        if (learns) halo.send_back_above(dx, f_.above.padding);
        sources.push_back({dx, 0, edge, above});
      }
      if (below > 0) {
        const Piece dx = backward_piece(lowering, kBelow, x.room("x below", edge + below),
                                        y.slice("dy below", dy, dy.rows - below, below));
        if (learns) halo.send_back_below(dx, edge);
        sources.push_back({dx, own - edge, own, 0});
      }
      const Piece middle = y.slice("dy inside", dy, above, inside(own));
      sources.push_back({backward_piece(lowering, kInside, {lowering.input(0), own}, middle), 0, own, 0});
    }
    if (!learns) return;
    for (const RowPieces::Source& source : halo.gradients_of_sent()) sources.push_back(source);
    lowering.give_gradient(0, x.sum_of("d own", sources, own).tensor);
  }

 private:
  enum Number : int { kInside, kAbove, kBelow };

  bool at_once(const Lowering& lowering) const {
    return !lowering.travels_beside_ops() || inside(lowering.input_shape(0)[2]) < 1;
  }
  // Output rows that see own rows alone.
  std::int64_t inside(std::int64_t own) const { return own - reach_ + 1; }

  void forward_piece(Lowering& lowering, Number number, const Piece& x, const Piece& y) const {
    PieceLowering piece(lowering, number, ends(lowering, x, y));
    layer_->forward(piece);
  }
  // The gradient of x, where it is wanted.
  Piece backward_piece(Lowering& lowering, Number number, const Piece& x, const Piece& dy) const {
    PieceLowering::Ends of = ends(lowering, x, dy);
    of.dy = dy.tensor;
    Piece dx;
    if (lowering.wants_grad_input(0))
      dx = RowPieces(lowering, lowering.input_shape(0)).room(fmt::format("dx {}", static_cast<int>(number)), x.rows);
    of.dx = dx.tensor;
    PieceLowering piece(lowering, number, of);
    layer_->backward(piece);
    return dx;
  }
  static PieceLowering::Ends ends(Lowering& lowering, const Piece& x, const Piece& y) {
    const RowPieces xs(lowering, lowering.input_shape(0)), ys(lowering, lowering.output_shape(0));
    return {.x = x.tensor, .y = y.tensor, .dx = {}, .dy = {}, .x_shape = xs.shape(x.rows), .y_shape = ys.shape(y.rows)};
  }

  LayerPtr layer_;
  RowsFetch f_;
  std::int64_t reach_;
};

}  // namespace

LayerPtr make_rows_window(LayerPtr layer, const RowsFetch& fetch, std::int64_t reach) {
  return std::make_shared<RowsWindow>(std::move(layer), fetch, reach);
}

}  // namespace echelon
