// SPDX-License-Identifier: Apache-2.0
#include "model/losses/values.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

enum Input : int { kValues = 0, kLabels = 1, kWeights = 2 };

class ValueLossLayer final : public SplittableLayer {
 public:
  ValueLossLayer(ValueLoss loss, std::int64_t classes) : loss_(loss), classes_(classes) {
    if (classes_ == 0 || (is_of_two(loss_) && classes_ == 2)) return;
    throw ConfigError(
        fmt::format("loss \"{}\" needs labels that are real numbers{}, but the data has {} classes; use \"softmax\"",
                    name(), is_of_two(loss_) ? " or 2 classes" : "", classes_));
  }

  std::string_view kind() const override {
    switch (loss_) {
      case ValueLoss::squared: return "mse_loss";
      case ValueLoss::logistic: return "bce_loss";
      case ValueLoss::absolute: return "mae_loss";
      case ValueLoss::hinge: return "hinge_loss";
    }
    return "?";
  }
  int arity() const override { return 3; }
  bool reads_indices(int input) const override { return input == kLabels && classes_ > 0; }
  bool counts_correct() const override { return is_of_two(loss_); }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    const Shape &values = inputs[kValues], &labels = inputs[kLabels];
    const bool first = values == labels.prepended(1), last = labels.rank() == 1 && values == Shape{labels[0], 1};
    if (first || last || values == labels) return {values};
    const bool steps = labels.rank() > 0 && values.rank() == 2 && values[0] == labels[0];
    const std::int64_t units = labels.rank() == 0 ? 1 : !steps ? labels[0] : labels.rank() == 1 ? 1 : labels[1];
    throw ConfigError(fmt::format(
        "the output of the last layer is {}, but the labels are {}; end with a {}", values.text(), labels.text(),
        labels.rank() > 1 && !steps ? "layer of that shape" : fmt::format("dense layer of units = {}", units)));
  }

  void forward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::loss_values_forward, lowering),
                {lowering.input(kValues), lowering.input(kLabels), lowering.input(kWeights),
                 lowering.kept("sums", Shape{3}, DType::f64)});
    lowering.alias(0, kValues);
  }

  void backward(Lowering& lowering) const override {
    lowering.op(
        spec(OpKind::loss_values_backward, lowering),
        {lowering.input(kValues), lowering.input(kLabels), lowering.input(kWeights), lowering.grad_input(kValues)},
        ScaleSource::loss_scale);
  }

  std::optional<RowWindow> row_window() const override { return RowWindow{}; }
  LayerPtr on_rows(const Units&, int) const override { return std::make_shared<ValueLossLayer>(*this); }

 private:
  std::string_view name() const { return kind().substr(0, kind().find('_')); }
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    return {.kind = kind,
            .dtype = lowering.dtype(),
            .dims = ValueLossDims{
                .elems = lowering.input_shape(kLabels).elems(), .loss = loss_, .index_targets = classes_ > 0}};
  }

  ValueLoss loss_;
  std::int64_t classes_;
};

}  // namespace

LayerPtr make_value_loss(ValueLoss loss, std::int64_t classes) {
  return std::make_shared<ValueLossLayer>(loss, classes);
}

}  // namespace echelon::inline model
