// SPDX-License-Identifier: Apache-2.0
#include "model/losses/softmax.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"
#include "model/splits/softmax_part.hpp"

namespace echelon::inline model {
namespace {

enum Input : int { kLogits = 0, kLabels = 1, kWeights = 2 };

struct OtherLoss {
  ClassLoss loss;
  double gamma;
};

class SoftmaxLoss final : public SplittableLayer {
 public:
  SoftmaxLoss(std::int64_t classes, double smoothing, bool dense, std::optional<OtherLoss> other = {})
      : classes_(classes), smoothing_(smoothing), dense_(dense), other_(other) {}

  std::string_view kind() const override {
    return !other_ ? "softmax_loss" : other_->loss == ClassLoss::dice ? "dice_loss" : "focal_loss";
  }
  std::string attributes(std::span<const Shape>) const override {
    return fmt::format("{} classes{}{}", classes_, smoothing_ > 0 ? fmt::format(" smoothing {:g}", smoothing_) : "",
                       other_ && other_->loss == ClassLoss::focal ? fmt::format(" gamma {:g}", other_->gamma) : "");
  }
  int arity() const override { return 3; }

  bool reads_indices(int input) const override { return input == kLabels; }
  bool reads_logits() const override { return true; }
  bool has_class_planes() const override { return dense_; }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    const Shape &logits = inputs[kLogits], &labels = inputs[kLabels];
    if (dense_) {
      if (logits == labels.prepended(classes_)) return {logits};
      throw ConfigError(fmt::format(
          "the output of the last layer is {}, but there is a class of {} for each of {}; end with a layer of {}",
          logits.text(), classes_, labels.text(), labels.prepended(classes_).text()));
    }
    if (logits.rank() != labels.rank() + 1)
      throw ConfigError(fmt::format(
          "the output of the last layer is {}, but {}; end with a dense layer of units = {}{}", logits.text(),
          labels.rank() == 0 ? std::string("the loss needs one value for each class")
                             : fmt::format("the labels are {}", labels.text()),
          classes_, labels.rank() == 0 ? " after a flatten layer" : " over a sequence"));
    const std::int64_t given = logits[logits.rank() - 1];
    if (given != classes_)
      throw ConfigError(fmt::format("the last layer has {} but the data has {}; use units = {}",
                                    counted(given, "output"),
                                    classes_ == 1 ? "1 class" : fmt::format("{} classes", classes_), classes_));
    if (logits.elems() != labels.elems() * classes_)
      throw ConfigError(
          fmt::format("the output of the last layer is {}, but the labels are {}", logits.text(), labels.text()));
    return {logits};
  }

  void forward(Lowering& lowering) const override {
    lowering.op(spec(other_ ? OpKind::loss_class_forward : OpKind::loss_softmax_forward, lowering),
                {lowering.input(kLogits), lowering.input(kLabels), lowering.input(kWeights), lowering.output(0),
                 lowering.kept("sums", Shape{3}, DType::f64)},
                ScaleSource::one, 0);
  }

  void backward(Lowering& lowering) const override {
    lowering.op(spec(other_ ? OpKind::loss_class_backward : OpKind::loss_softmax_backward, lowering),
                {lowering.output(0), lowering.input(kLabels), lowering.input(kWeights), lowering.grad_input(kLogits)},
                ScaleSource::loss_scale, 0);
  }

  LayerPtr on_classes(const Units& classes, int cut, int parts) const override {
    if (dense_ || other_) return nullptr;
    return make_softmax_loss_part(classes, cut, parts, smoothing_);
  }

 private:
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    const Shape labels = lowering.input_shape(kLabels);
    const std::int64_t places = dense_ ? labels.row_elems() : 1;
    if (other_)
      return {
          .kind = kind,
          .dtype = lowering.dtype(),
          .dims = ClassLossDims{
              .N = labels.elems() / places, .K = classes_, .P = places, .loss = other_->loss, .gamma = other_->gamma}};
    return {.kind = kind,
            .dtype = lowering.dtype(),
            .dims = SoftmaxDims{.N = labels.elems() / places,
                                .K = classes_,
                                .smoothing = lowering.training() ? smoothing_ : 0,
                                .P = places}};
  }

  std::int64_t classes_;
  double smoothing_;
  bool dense_;
  std::optional<OtherLoss> other_;
};

}  // namespace

LayerPtr make_class_loss(std::int64_t classes, ClassLoss loss, double gamma, bool dense) {
  return std::make_shared<SoftmaxLoss>(classes, 0, dense, OtherLoss{loss, gamma});
}

LayerPtr make_softmax_loss(std::int64_t classes, double smoothing, bool dense) {
  return std::make_shared<SoftmaxLoss>(classes, smoothing, dense);
}

}  // namespace echelon::inline model
