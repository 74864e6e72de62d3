// SPDX-License-Identifier: Apache-2.0
#include "model/splits/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.hpp"
#include "model/lowering.hpp"

namespace echelon::inline model {
namespace {

// The ops treat a step as a channel whose features are one row.
struct Extents {
  explicit Extents(const Shape& x) : N(x[0]), F(x.rank() == 3 ? x[2] : 1) {}
  std::int64_t N, F;
};

// Concatenates tensors (N, steps, F) along their steps. An op takes at most kMaxConcat of them, so several rounds of
// ops may be needed, each of which works on the results of the previous round.
class Joiner {
 public:
  Joiner(Lowering& lowering, const Extents& extents) : lowering_(lowering), e_(extents) {}

  void join(std::vector<TensorRef> tensors, std::vector<std::int64_t> steps, TensorRef whole) {
    for (int round = 0; tensors.size() > kMaxConcat; ++round) {
      std::vector<TensorRef> joined;
      std::vector<std::int64_t> joined_steps;
      for (std::size_t begin = 0; begin < tensors.size(); begin += kMaxConcat) {
        const std::size_t end = std::min(begin + kMaxConcat, tensors.size());
        joined_steps.push_back(std::accumulate(steps.begin() + static_cast<std::ptrdiff_t>(begin),
                                               steps.begin() + static_cast<std::ptrdiff_t>(end), std::int64_t{0}));
        joined.push_back(lowering_.kept(fmt::format("round {} from {}", round, begin),
                                        Shape{e_.N, joined_steps.back(), 1, e_.F}, lowering_.dtype()));
        op(tensors, steps, begin, end, joined.back());
      }
      tensors = std::move(joined), steps = std::move(joined_steps);
    }
    op(tensors, steps, 0, tensors.size(), whole);
  }

 private:
  void op(const std::vector<TensorRef>& tensors, const std::vector<std::int64_t>& steps, std::size_t begin,
          std::size_t end, TensorRef whole) {
    ConcatDims dims{.N = e_.N, .H = 1, .W = e_.F, .channels = {}};
    std::vector<TensorRef> args;
    for (std::size_t i = begin; i < end; ++i) {
      dims.channels[args.size()] = steps[i];
      args.push_back(tensors[i]);
    }
    args.push_back(whole);
    lowering_.op({.kind = OpKind::concat, .dtype = lowering_.dtype(), .dims = dims}, args);
  }

  Lowering& lowering_;
  Extents e_;
};

class SplitSteps final : public Layer {
 public:
  SplitSteps(std::vector<std::int64_t> steps, bool indices) : steps_(std::move(steps)), indices_(indices) {}
  std::string_view kind() const override { return "split_steps"; }
  bool reads_indices(int) const override { return indices_; }
  bool gives_indices() const override { return indices_; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    ECHELON_CHECK_EQ(std::accumulate(steps_.begin(), steps_.end(), std::int64_t{0}), inputs[0][0]);
    std::vector<Shape> outputs;
    for (const std::int64_t steps : steps_) outputs.push_back(inputs[0].with_front(steps));
    return outputs;
  }

  void forward(Lowering& lowering) const override {
    const Shape x = lowering.input_shape(0);
    const Extents e(x);
    std::int64_t first = 0;
    for (std::size_t i = 0; i < steps_.size(); first += steps_[i++]) {
      const SliceDims dims{e.N, x[1], 1, e.F, first, steps_[i], indices_};
      lowering.op({.kind = OpKind::slice, .dtype = lowering.dtype(), .dims = dims},
                  {lowering.input(0), lowering.output(static_cast<int>(i))});
    }
  }

  void backward(Lowering& lowering) const override {
    if (!lowering.wants_grad_input(0)) return;
    std::vector<TensorRef> gradients;
    for (int i = 0; i < static_cast<int>(steps_.size()); ++i) gradients.push_back(lowering.grad_output(i));
    // A concat cannot add to the gradients of other readers of the sequence; a slice of all steps can.
    const Shape x = lowering.input_shape(0);
    const Extents e(x);
    const TensorRef whole = lowering.kept("gradient", Shape{e.N, x[1], 1, e.F}, lowering.dtype());
    Joiner(lowering, e).join(std::move(gradients), steps_, whole);
    lowering.op({.kind = OpKind::slice, .dtype = lowering.dtype(), .dims = SliceDims{e.N, x[1], 1, e.F, 0, x[1]}},
                {whole, lowering.grad_input(0)});
  }

 private:
  std::vector<std::int64_t> steps_;
  bool indices_;
};

class JoinSteps final : public Layer {
 public:
  std::string_view kind() const override { return "join_steps"; }
  int arity() const override { return -1; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    std::int64_t steps = 0;
    for (const Shape& input : inputs) steps += input[0];
    return {inputs[0].with_front(steps)};
  }

  void forward(Lowering& lowering) const override {
    std::vector<TensorRef> chunks;
    std::vector<std::int64_t> steps;
    for (int i = 0; i < lowering.inputs(); ++i) {
      chunks.push_back(lowering.input(i));
      steps.push_back(lowering.input_shape(i)[1]);
    }
    Joiner(lowering, Extents(lowering.input_shape(0))).join(std::move(chunks), std::move(steps), lowering.output(0));
  }

  void backward(Lowering& lowering) const override {
    const Shape y = lowering.output_shape(0);
    const Extents e(y);
    std::int64_t first = 0;
    for (int i = 0; i < lowering.inputs(); ++i) {
      const SliceDims dims{e.N, y[1], 1, e.F, first, lowering.input_shape(i)[1]};
      if (lowering.wants_grad_input(i))
        lowering.op({.kind = OpKind::slice, .dtype = lowering.dtype(), .dims = dims},
                    {lowering.grad_output(0), lowering.grad_input(i)});
      first += dims.count;
    }
  }
};

}  // namespace

LayerPtr make_split_steps(std::vector<std::int64_t> steps, bool indices) {
  return std::make_shared<SplitSteps>(std::move(steps), indices);
}
LayerPtr make_join_steps() { return std::make_shared<JoinSteps>(); }

}  // namespace echelon::inline model
