// SPDX-License-Identifier: Apache-2.0
// Pooling of a sequence: (T, F) -> (F), the sum or mean over its positions, or the last position; positions beyond a
// sample's length are ignored.
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"

namespace echelon::inline model {
namespace {

SequencePool mode_of(const std::string& name) {
  if (name == "sum") return SequencePool::sum;
  if (name == "mean") return SequencePool::mean;
  if (name == "last") return SequencePool::last;
  const std::vector<std::string> known = {"sum", "mean", "last"};
  throw ConfigError(unknown_name("mode", name, known));
}

class SequencePoolLayer final : public Layer {
 public:
  explicit SequencePoolLayer(const LayerConfig& config) : name_(config.mode), mode_(mode_of(config.mode)) {}

  std::string_view kind() const override { return "sequence_pool"; }
  std::string attributes(std::span<const Shape>) const override { return name_; }
  bool wants_lengths() const override { return true; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs[0].rank() != 2)
      throw ConfigError(fmt::format("a sequence_pool layer takes a sequence of features (T, F), but its input is {}",
                                    inputs[0].text()));
    return {inputs[0].without_front()};
  }

  void forward(Lowering& lowering) const override {
    lower(lowering, OpKind::sequence_pool_forward, lowering.input(0), lowering.output(0));
  }
  void backward(Lowering& lowering) const override {
    if (lowering.wants_grad_input(0))
      lower(lowering, OpKind::sequence_pool_backward, lowering.grad_output(0), lowering.grad_input(0));
  }

 private:
  void lower(Lowering& lowering, OpKind kind, TensorRef from, TensorRef to) const {
    const Shape x = lowering.input_shape(0);
    const bool lengths = lowering.inputs() > 1;
    const OpSpec spec{.kind = kind,
                      .dtype = lowering.dtype(),
                      .dims = SequencePoolDims{.N = x[0], .T = x[1], .F = x[2], .mode = mode_, .lengths = lengths}};
    if (lengths)
      lowering.op(spec, {from, lowering.input(1), to});
    else
      lowering.op(spec, {from, to});
  }

  std::string name_;
  SequencePool mode_;
};

}  // namespace

LayerPtr make_sequence_pool(const LayerConfig& config) { return std::make_shared<SequencePoolLayer>(config); }

}  // namespace echelon::inline model
