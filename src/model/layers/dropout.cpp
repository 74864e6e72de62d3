// SPDX-License-Identifier: Apache-2.0
// Dropout (Srivastava et al. 2014): in training each element is zero with probability `rate`, else divided by 1 - rate;
// in evaluation nothing changes.
//
// The dropped elements are a hash of (seed, node, step, the sample's number in the data set, element): the same for any
// number of replicas, any micro-batch and any device. The backward pass computes the hash again and keeps no mask.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

enum Input : int { kValue = 0, kIds = 1 };

class Dropout final : public SplittableLayer {
 public:
  explicit Dropout(const LayerConfig& config) : rate_(config.rate) {
    if (!(rate_ >= 0 && rate_ < 1)) throw ConfigError(fmt::format("rate = {} must be at least 0 and below 1", rate_));
  }

  std::string_view kind() const override { return "dropout"; }
  std::string attributes(std::span<const Shape>) const override { return fmt::format("rate {:g}", rate_); }
  bool wants_ids() const override { return true; }
  std::vector<Shape> infer(std::span<const Shape> inputs) const override { return {inputs[kValue]}; }

  void forward(Lowering& lowering) const override {
    if (!lowering.training()) return lowering.alias(0, kValue);
    lowering.op(spec(lowering), {lowering.input(kValue), lowering.input(kIds), lowering.output(0)});
  }

  void backward(Lowering& lowering) const override {
    if (!lowering.wants_grad_input(kValue)) return;
    lowering.op(spec(lowering), {lowering.grad_output(0), lowering.input(kIds), lowering.grad_input(kValue)});
  }

  LayerPtr on_channels(const Units& channels) const override {
    auto part = std::make_shared<Dropout>(*this);
    part->part_ = channels;
    return part;
  }
  LayerPtr on_steps(const Units& steps) const override { return on_channels(steps); }

  std::optional<RowWindow> row_window() const override { return RowWindow{}; }
  LayerPtr on_rows(const Units& rows, int) const override {
    auto part = std::make_shared<Dropout>(*this);
    part->rows_ = rows;
    return part;
  }

 private:
  OpSpec spec(const Lowering& lowering) const {
    const Shape shape = lowering.input_shape(kValue);
    DropoutDims dims{.shape = shape, .rate = rate_};
    const std::int64_t row = rows_.count() > 0 ? shape.row_elems() / (shape[1] * shape[2]) : 0;
    dims.plane = rows_.all * row;
    const std::int64_t channel = rows_.count() > 0   ? dims.plane
                                 : part_.count() > 0 ? shape.row_elems() / part_.count()
                                                     : 0;
    dims.first = part_.begin * channel + (rows_.begin * row);
    return {.kind = OpKind::dropout, .dtype = lowering.dtype(), .dims = dims};
  }

  double rate_;
  Units part_;  // the channels or steps of a part; count 0: all
  Units rows_;  // the rows of a spatial shard; count 0: all
};

}  // namespace

LayerPtr make_dropout(const LayerConfig& config) { return std::make_shared<Dropout>(config); }

}  // namespace echelon::inline model
