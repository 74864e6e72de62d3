// SPDX-License-Identifier: Apache-2.0
#include "model/splits/rows.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/check.hpp"
#include "model/splits/halo.hpp"
#include "model/splits/row_pieces.hpp"

namespace echelon::inline model {
namespace {

using Piece = RowPieces::Piece;

class Rows final : public Layer {
 public:
  explicit Rows(const RowsFetch& fetch) : f_(fetch) {}
  std::string_view kind() const override { return "rows"; }
  std::string attributes(std::span<const Shape>) const override { return rows_text(f_); }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override { return {with_halo(inputs[0], f_)}; }

  void forward(Lowering& lowering) const override {
    const Halo halo(lowering, f_);
    halo.send_rows();
    if (is_input(lowering)) return lowering.share(0, 0);
    RowPieces rows(lowering, lowering.input_shape(0));
    std::vector<Piece> pieces = halo.from_above();
    if (f_.end > f_.first)
      pieces.push_back(rows.slice("own", {lowering.input(0), lowering.input_shape(0)[2]}, f_.first, f_.end - f_.first));
    for (const Piece& piece : halo.from_below()) pieces.push_back(piece);
    rows.join(pieces, lowering.output(0));
  }

  void backward(Lowering& lowering) const override {
    if (!lowering.wants_grad_input(0)) return;
    const Halo halo(lowering, f_);
    const std::int64_t own = lowering.input_shape(0)[2], above = f_.above.rows(), taken = f_.end - f_.first;
    const Piece dy{lowering.grad_output(0), lowering.output_shape(0)[2]};
    halo.send_back_above(dy, f_.above.padding);
    halo.send_back_below(dy, above + taken);
    if (is_input(lowering) && f_.above.out + f_.below.out == 0) return lowering.pass_gradient(0, 0);
    std::vector<RowPieces::Source> sources = halo.gradients_of_sent();
    sources.push_back({dy, f_.first, f_.end, above});
    lowering.give_gradient(0, RowPieces(lowering, lowering.input_shape(0)).sum_of("d own", sources, own).tensor);
  }

 private:
  // Whether the output equals the input.
  bool is_input(const Lowering& lowering) const {
    return f_.first == 0 && f_.end == lowering.input_shape(0)[2] && f_.above.rows() + f_.below.rows() == 0;
  }

  RowsFetch f_;
};

class GatherRows final : public Layer {
 public:
  GatherRows(int cut, const Units& rows) : cut_(cut), rows_(rows) {}
  std::string_view kind() const override { return "gather rows"; }
  std::string attributes(std::span<const Shape>) const override { return fmt::format("cut {}", cut_); }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override { return {inputs[0].with(1, rows_.all)}; }
  void forward(Lowering& lowering) const override { lowering.transfer(cut_, lowering.input(0), lowering.output(0)); }
  void backward(Lowering& lowering) const override {
    if (!lowering.wants_grad_input(0)) return;
    RowPieces rows(lowering, lowering.input_shape(0));
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

}  // namespace echelon::inline model
