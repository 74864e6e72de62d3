// SPDX-License-Identifier: Apache-2.0
#include "model/splits/cut.hpp"

#include <fmt/format.h>

#include "model/lowering.hpp"

namespace echelon::inline model {
namespace {

constexpr TensorRef kNothing;

class Send final : public Layer {
 public:
  explicit Send(int cut) : cut_(cut) {}
  std::string_view kind() const override { return "send"; }
  std::string attributes(std::span<const Shape>) const override { return fmt::format("cut {}", cut_); }
  // Every node has an output; no op writes or reads this one.
  std::vector<Shape> infer(std::span<const Shape>) const override { return {Shape{}}; }
  void forward(Lowering& lowering) const override { lowering.transfer(cut_, lowering.input(0), kNothing); }
  void backward(Lowering& lowering) const override {
    if (lowering.wants_grad_input(0)) lowering.transfer(cut_, kNothing, lowering.grad_input(0));
  }

 private:
  int cut_;
};

class Receive final : public Layer {
 public:
  Receive(int cut, const Shape& shape, bool learns) : cut_(cut), shape_(shape), learns_(learns) {}
  std::string_view kind() const override { return "receive"; }
  std::string attributes(std::span<const Shape>) const override { return fmt::format("cut {}", cut_); }
  int arity() const override { return 0; }
  bool learns_elsewhere() const override { return learns_; }
  std::vector<Shape> infer(std::span<const Shape>) const override { return {shape_}; }
  void forward(Lowering& lowering) const override { lowering.transfer(cut_, kNothing, lowering.output(0)); }
  void backward(Lowering& lowering) const override { lowering.transfer(cut_, lowering.grad_output(0), kNothing); }

 private:
  int cut_;
  Shape shape_;
  bool learns_;
};

class Spread final : public Layer {
 public:
  explicit Spread(int cut) : cut_(cut) {}
  std::string_view kind() const override { return "spread"; }
  std::string attributes(std::span<const Shape>) const override { return fmt::format("cut {}", cut_); }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override { return {inputs[0]}; }
  void forward(Lowering& lowering) const override { lowering.share(0, 0); }
  void backward(Lowering& lowering) const override {
    if (lowering.wants_grad_input(0)) lowering.transfer(cut_, lowering.grad_output(0), lowering.grad_input(0), true);
  }

 private:
  int cut_;
};

class Sum final : public Layer {
 public:
  explicit Sum(int cut) : cut_(cut) {}
  std::string_view kind() const override { return "sum"; }
  std::string attributes(std::span<const Shape>) const override { return fmt::format("cut {}", cut_); }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override { return {inputs[0]}; }
  void forward(Lowering& lowering) const override {
    lowering.transfer(cut_, lowering.input(0), lowering.output(0), true);
  }
  void backward(Lowering& lowering) const override { lowering.pass_gradient(0, 0); }

 private:
  int cut_;
};

class Gather final : public Layer {
 public:
  Gather(int cut, const Units& units) : cut_(cut), units_(units) {}
  std::string_view kind() const override { return "gather"; }
  std::string attributes(std::span<const Shape>) const override { return fmt::format("cut {}", cut_); }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    return {inputs[0].rank() == 2 ? Shape{inputs[0][0], units_.all} : inputs[0].with_front(units_.all)};
  }
  void forward(Lowering& lowering) const override { lowering.transfer(cut_, lowering.input(0), lowering.output(0)); }
  void backward(Lowering& lowering) const override {
    if (!lowering.wants_grad_input(0)) return;
    const Shape y = lowering.output_shape(0);  // for the op, a sequence is N*T samples of F channels
    const bool image = y.rank() >= 4;
    const std::int64_t W = image ? y[y.rank() - 1] : 1, H = image ? y.row_elems() / (y[1] * W) : 1;
    const SliceDims dims{y.rank() == 3 ? y[0] * y[1] : y[0], units_.all, H, W, units_.begin, units_.count()};
    lowering.op({.kind = OpKind::slice, .dtype = lowering.dtype(), .dims = dims},
                {lowering.grad_output(0), lowering.grad_input(0)});
  }

 private:
  int cut_;
  Units units_;
};

}  // namespace

LayerPtr make_spread(int cut) { return std::make_shared<Spread>(cut); }
LayerPtr make_sum(int cut) { return std::make_shared<Sum>(cut); }
LayerPtr make_gather(int cut, const Units& units) { return std::make_shared<Gather>(cut, units); }
LayerPtr make_send(int cut) { return std::make_shared<Send>(cut); }
LayerPtr make_receive(int cut, const Shape& shape, bool learns) {
  return std::make_shared<Receive>(cut, shape, learns);
}

}  // namespace echelon::inline model
