#include "model/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "model/lowering.hpp"

namespace echelon {
namespace {

constexpr TensorRef kNothing;

// Tensors (N, C, rows, W) of one node, cut and joined by rows. To the ops rows are the channels of N*C samples.
class RowWriter {
 public:
  RowWriter(Lowering& lowering, const Shape& image) : lowering_(lowering), image_(image) {}

  struct Piece {
    TensorRef tensor;
    std::int64_t rows;
  };

  Piece room(const std::string& tag, std::int64_t rows) {
    return {lowering_.kept(tag, shape(rows), lowering_.dtype()), rows};
  }
  Piece constant(const std::string& tag, std::int64_t rows, Constant value) {
    return {lowering_.constant(tag, shape(rows), value), rows};
  }
  // Rows [first, first + count).
  Piece slice(const std::string& tag, const Piece& from, std::int64_t first, std::int64_t count) {
    if (count == from.rows) return from;
    const Piece to = room(tag, count);
    const SliceDims dims{image_[0] * image_[1], from.rows, 1, image_[3], first, count};
    lowering_.op({.kind = OpKind::slice, .dtype = lowering_.dtype(), .dims = dims}, {from.tensor, to.tensor});
    return to;
  }
  void join(const std::vector<Piece>& pieces, TensorRef to) {
    ConcatDims dims{.N = image_[0] * image_[1], .H = 1, .W = image_[3], .channels = {}};
    std::vector<TensorRef> args;
    for (const Piece& piece : pieces) {
      dims.channels[args.size()] = piece.rows;
      args.push_back(piece.tensor);
    }
    args.push_back(to);
    lowering_.op({.kind = OpKind::concat, .dtype = lowering_.dtype(), .dims = dims}, args);
  }
  Piece sum(const std::string& tag, const Piece& a, const Piece& b) {
    const Piece to = room(tag, a.rows);
    const OpSpec spec{.kind = OpKind::add, .dtype = lowering_.dtype(), .dims = ElementwiseDims{shape(a.rows)}};
    lowering_.op(spec, {a.tensor, b.tensor, to.tensor});
    return to;
  }

 private:
  Shape shape(std::int64_t rows) const { return {image_[0], image_[1], rows, image_[3]}; }

  Lowering& lowering_;
  Shape image_;  // (N, C, ., W)
};

using Piece = RowWriter::Piece;

class Rows final : public Layer {
 public:
  explicit Rows(const RowsFetch& fetch) : f_(fetch) {}
  std::string_view kind() const override { return "rows"; }
  std::string attributes() const override {
    return fmt::format("{} + {} + {}", f_.above.in + f_.above.padding, f_.end - f_.first,
                       f_.below.in + f_.below.padding);
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    const Shape& x = inputs[0];
    ECHELON_CHECK(f_.end <= x[1] && f_.above.out <= x[1] && f_.below.out <= x[1], "rows of {}", x.text());
    return {Shape{x[0], begin_of_own() + f_.end - f_.first + f_.below.in + f_.below.padding, x[2]}};
  }

  void forward(Lowering& lowering) const override {
    const Shape x = lowering.input_shape(0);
    RowWriter rows(lowering, x);
    const Piece own{lowering.input(0), x[2]};
    if (f_.above.out > 0)
      lowering.transfer(f_.above.out_cut, rows.slice("to above", own, 0, f_.above.out).tensor, kNothing);
    if (f_.below.out > 0)
      lowering.transfer(f_.below.out_cut, rows.slice("to below", own, own.rows - f_.below.out, f_.below.out).tensor,
                        kNothing);
    if (is_input(own.rows)) return lowering.share(0, 0);
    std::vector<Piece> pieces;
    const Constant padding = f_.lowest ? Constant::lowest : Constant::zero;
    if (f_.above.padding > 0) pieces.push_back(rows.constant("padding above", f_.above.padding, padding));
    if (f_.above.in > 0) pieces.push_back(received(lowering, rows, "from above", f_.above.in_cut, f_.above.in));
    if (f_.end > f_.first) pieces.push_back(rows.slice("own", own, f_.first, f_.end - f_.first));
    if (f_.below.in > 0) pieces.push_back(received(lowering, rows, "from below", f_.below.in_cut, f_.below.in));
    if (f_.below.padding > 0) pieces.push_back(rows.constant("padding below", f_.below.padding, padding));
    rows.join(pieces, lowering.output(0));
  }

  void backward(Lowering& lowering) const override {
    if (!lowering.wants_grad_input(0)) return;
    const Shape x = lowering.input_shape(0), y = lowering.output_shape(0);
    RowWriter rows(lowering, x);
    const Piece dy{lowering.grad_output(0), y[2]};
    if (f_.above.in > 0)
      lowering.transfer(f_.above.in_cut, rows.slice("back above", dy, f_.above.padding, f_.above.in).tensor, kNothing);
    if (f_.below.in > 0) {
      const std::int64_t first = begin_of_own() + f_.end - f_.first;
      lowering.transfer(f_.below.in_cut, rows.slice("back below", dy, first, f_.below.in).tensor, kNothing);
    }
    if (is_input(x[2]) && f_.above.out + f_.below.out == 0) return lowering.pass_gradient(0, 0);
    Piece above{}, below{};  // gradients of the rows that went there
    if (f_.above.out > 0) above = received(lowering, rows, "d above", f_.above.out_cut, f_.above.out);
    if (f_.below.out > 0) below = received(lowering, rows, "d below", f_.below.out_cut, f_.below.out);
    std::vector<Piece> pieces;
    const std::vector<std::int64_t> ends = boundaries(x[2]);
    for (std::size_t i = 1; i < ends.size(); ++i)
      pieces.push_back(gradient(rows, dy, above, below, x[2], ends[i - 1], ends[i]));
    const Piece dx = rows.room("d own", x[2]);
    rows.join(pieces, dx.tensor);
    lowering.give_gradient(0, dx.tensor);
  }

 private:
  std::int64_t begin_of_own() const { return f_.above.padding + f_.above.in; }
  // The output is the input as it is.
  bool is_input(std::int64_t own) const {
    return f_.first == 0 && f_.end == own && begin_of_own() + f_.below.in + f_.below.padding == 0;
  }
  static Piece received(Lowering& lowering, RowWriter& rows, const std::string& tag, int cut, std::int64_t count) {
    const Piece room = rows.room(tag, count);
    lowering.transfer(cut, kNothing, room.tensor);
    return room;
  }
  // Between two of these, all rows have gradients from the same places.
  std::vector<std::int64_t> boundaries(std::int64_t own) const {
    std::vector<std::int64_t> all = {0, f_.first, f_.end, f_.above.out, own - f_.below.out, own};
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
  // Of own rows [begin, end).
  Piece gradient(RowWriter& rows, const Piece& dy, const Piece& above, const Piece& below, std::int64_t own,
                 std::int64_t begin, std::int64_t end) const {
    const std::int64_t count = end - begin, first_below = own - below.rows;
    std::vector<Piece> parts;
    const auto tag = [&](const char* what) { return fmt::format("d rows {}: {}", begin, what); };
    if (begin >= f_.first && end <= f_.end)
      parts.push_back(rows.slice(tag("here"), dy, begin_of_own() + begin - f_.first, count));
    if (end <= above.rows) parts.push_back(rows.slice(tag("above"), above, begin, count));
    if (begin >= first_below && below.rows > 0)
      parts.push_back(rows.slice(tag("below"), below, begin - first_below, count));
    if (parts.empty()) return rows.constant(tag("none"), count, Constant::zero);
    for (std::size_t i = 1; i < parts.size(); ++i)
      parts[0] = rows.sum(tag("sum ") + std::to_string(i), parts[0], parts[i]);
    return parts[0];
  }

  RowsFetch f_;
};

class GatherRows final : public Layer {
 public:
  GatherRows(int cut, const Units& rows) : cut_(cut), rows_(rows) {}
  std::string_view kind() const override { return "gather rows"; }
  std::string attributes() const override { return fmt::format("cut {}", cut_); }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    return {Shape{inputs[0][0], rows_.all, inputs[0][2]}};
  }
  void forward(Lowering& lowering) const override { lowering.transfer(cut_, lowering.input(0), lowering.output(0)); }
  void backward(Lowering& lowering) const override {
    if (!lowering.wants_grad_input(0)) return;
    RowWriter rows(lowering, lowering.input_shape(0));
    const Piece own = rows.slice("d own", {lowering.grad_output(0), rows_.all}, rows_.begin, rows_.count());
    lowering.give_gradient(0, own.tensor);
  }

 private:
  int cut_;
  Units rows_;
};

}  // namespace

LayerPtr make_rows(const RowsFetch& fetch) { return std::make_shared<Rows>(fetch); }
LayerPtr make_gather_rows(int cut, const Units& rows) { return std::make_shared<GatherRows>(cut, rows); }

}  // namespace echelon
