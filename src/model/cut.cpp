#include "model/cut.hpp"

#include <fmt/format.h>

#include "model/lowering.hpp"

namespace echelon {
namespace {

constexpr TensorRef kNothing;

class Send final : public Layer {
 public:
  explicit Send(int cut) : cut_(cut) {}
  std::string_view kind() const override { return "send"; }
  std::string attributes() const override { return fmt::format("cut {}", cut_); }
  // A value that no op writes and nobody reads: nodes have one.
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
  std::string attributes() const override { return fmt::format("cut {}", cut_); }
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

}  // namespace

LayerPtr make_send(int cut) { return std::make_shared<Send>(cut); }
LayerPtr make_receive(int cut, const Shape& shape, bool learns) {
  return std::make_shared<Receive>(cut, shape, learns);
}

}  // namespace echelon
