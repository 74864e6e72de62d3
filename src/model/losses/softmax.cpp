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

enum Input : int { kLogits, kLabels, kWeights, kOthers, kOtherWeights };

struct OtherLoss {
  ClassLoss loss;
  double gamma;
};

class SoftmaxLoss final : public SplittableLayer {
 public:
  SoftmaxLoss(std::int64_t classes, double smoothing, bool dense, bool mixes, std::optional<OtherLoss> other = {})
      : classes_(classes), smoothing_(smoothing), dense_(dense), mixes_(mixes), other_(other) {}

  std::string_view kind() const override {
    return !other_ ? "softmax_loss" : other_->loss == ClassLoss::dice ? "dice_loss" : "focal_loss";
  }
  std::string attributes(std::span<const Shape>) const override {
    return fmt::format("{} classes{}{}", classes_, smoothing_ > 0 ? fmt::format(" smoothing {:g}", smoothing_) : "",
                       other_ && other_->loss == ClassLoss::focal ? fmt::format(" gamma {:g}", other_->gamma) : "");
  }
  int arity() const override { return mixes_ ? 5 : 3; }

  bool reads_indices(int input) const override { return input == kLabels || input == kOthers; }
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
    for (int of = 0; of < labels_read(lowering); ++of)
      lowering.op(spec(other_ ? OpKind::loss_class_forward : OpKind::loss_softmax_forward, lowering),
                  {lowering.input(kLogits), lowering.input(kLabels + 2 * of), lowering.input(kWeights + 2 * of),
                   probabilities(lowering, of), lowering.kept("sums", Shape{3}, DType::f64)},
                  ScaleSource::one, of);
  }

  void backward(Lowering& lowering) const override {
    for (int of = 0; of < labels_read(lowering); ++of)
      lowering.op(spec(other_ ? OpKind::loss_class_backward : OpKind::loss_softmax_backward, lowering),
                  {probabilities(lowering, of), lowering.input(kLabels + 2 * of), lowering.input(kWeights + 2 * of),
                   lowering.grad_input(kLogits)},
                  ScaleSource::loss_scale, of);
  }

  LayerPtr on_classes(const Units& classes, int cut, int parts) const override {
    if (dense_ || mixes_ || other_) return nullptr;
    return make_softmax_loss_part(classes, cut, parts, smoothing_);
  }
  // The loss of a place depends on that place alone, except for dice.
  std::optional<RowWindow> row_window() const override {
    if (!dense_ || mixes_ || (other_ && other_->loss == ClassLoss::dice)) return std::nullopt;
    return RowWindow{};
  }
  LayerPtr on_rows(const Units&, int) const override { return std::make_shared<SoftmaxLoss>(*this); }

 private:
  // Labels of a sample: a pass for each, whose losses and gradients add.
  int labels_read(const Lowering& lowering) const { return mixes_ && lowering.training() ? 2 : 1; }

  // Each pass has its own, because no op may write an output a second time.
  static TensorRef probabilities(Lowering& lowering, int of) {
    return of == 0 ? lowering.output(0) : lowering.kept("other_probs", lowering.output_shape(0), lowering.dtype());
  }

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
  bool dense_, mixes_;
  std::optional<OtherLoss> other_;
};

}  // namespace

LayerPtr make_class_loss(std::int64_t classes, ClassLoss loss, double gamma, bool dense, bool mixes) {
  return std::make_shared<SoftmaxLoss>(classes, 0, dense, mixes, OtherLoss{loss, gamma});
}

LayerPtr make_softmax_loss(std::int64_t classes, double smoothing, bool dense, bool mixes) {
  return std::make_shared<SoftmaxLoss>(classes, smoothing, dense, mixes);
}

}  // namespace echelon::inline model
