// SPDX-License-Identifier: Apache-2.0
// The Lowering of one piece of a node's rows: a convolution or pool that is lowered with it computes only that piece.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "model/lowering.hpp"

namespace echelon::inline model {

class PieceLowering final : public Lowering {
 public:
  struct Ends {
    std::function<TensorRef()> x;  // called once, and only if the layer reads its input
    TensorRef y, dx, dy;
    Shape x_shape, y_shape;
  };
  // `number` in [0, kPieces): distinguishes the kept tensors and the saved memory of the pieces.
  static constexpr int kPieces = 3;
  PieceLowering(Lowering& node, int number, Ends ends) : node_(node), number_(number), ends_(std::move(ends)) {}

  std::int64_t batch() const override { return node_.batch(); }
  bool training() const override { return node_.training(); }
  DType dtype() const override { return node_.dtype(); }
  bool travels_beside_ops() const override { return node_.travels_beside_ops(); }
  int inputs() const override { return 1; }
  Shape input_shape(int) const override { return ends_.x_shape; }
  Shape output_shape(int) const override { return ends_.y_shape; }
  TensorRef input(int) override { return x_.id < 0 ? x_ = ends_.x() : x_; }
  TensorRef output(int) override { return ends_.y; }
  bool wants_grad_input(int i) const override { return node_.wants_grad_input(i); }
  TensorRef grad_input(int) override { return ends_.dx; }
  TensorRef grad_output(int) override { return ends_.dy; }
  bool has_grad_output(int) const override { return true; }
  TensorRef parameter(int j) override { return node_.parameter(j); }
  TensorRef grad_parameter(int j) override { return node_.grad_parameter(j); }
  bool frozen(int j) const override { return node_.frozen(j); }
  TensorRef row_marks(int j) override { return node_.row_marks(j); }
  TensorRef kept(std::string_view tag, const Shape& shape, DType dtype) override {
    return node_.kept(fmt::format("{} {}", tag, number_), shape, dtype);
  }
  void op(const OpSpec& spec, const std::vector<TensorRef>& args, ScaleSource scale, int pair) override {
    node_.op(spec, args, scale, pair < 0 ? pair : kPieces * pair + number_);
  }
  TensorRef state(std::string_view, const Shape&) override { unsupported(); }
  void alias(int, int) override { unsupported(); }
  void share(int, int) override { unsupported(); }
  void pass_gradient(int, int) override { unsupported(); }
  void give_gradient(int, TensorRef, bool) override { unsupported(); }
  TensorRef zeros(std::string_view, const Shape&, bool) override { unsupported(); }
  void sum_over_replicas(TensorRef) override { unsupported(); }
  void count_cells(std::int64_t) override { unsupported(); }
  void transfer(int, TensorRef, TensorRef, bool) override { unsupported(); }

 private:
  [[noreturn]] static void unsupported() {
    ECHELON_CHECK(false, "not part of the lowering of a convolution or pool");
    std::abort();
  }

  Lowering& node_;
  int number_;
  Ends ends_;
  TensorRef x_;
};

}  // namespace echelon::inline model
