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

  std::string_view kind() const override { return !other_ ? "softmax_loss" : is_dice() ? "dice_loss" : "focal_loss"; }
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
    for (int of = 0; of < labels_read(lowering); ++of) {
      const TensorRef sums = lowering.kept("sums", Shape{3}, DType::f64);
      std::vector<TensorRef> args = {lowering.input(kLogits), lowering.input(kLabels + 2 * of),
                                     lowering.input(kWeights + 2 * of), probabilities(lowering, of), sums};
      if (is_dice()) args.push_back(own_overlaps(lowering, of));
      lowering.op(spec(other_ ? OpKind::loss_class_forward : OpKind::loss_softmax_forward, lowering), args,
                  ScaleSource::one, of);
      if (!is_dice()) continue;
      const TensorRef own = own_overlaps(lowering, of), all = all_overlaps(lowering, of);
      if (cut_ >= 0) lowering.transfer(cut_, own, all);
      lowering.op(spec(OpKind::loss_class_join, lowering), {own, all, sums});
    }
  }

  void backward(Lowering& lowering) const override {
    for (int of = 0; of < labels_read(lowering); ++of) {
      std::vector<TensorRef> args = {probabilities(lowering, of), lowering.input(kLabels + 2 * of),
                                     lowering.input(kWeights + 2 * of)};
      if (is_dice()) args.push_back(all_overlaps(lowering, of));
      args.push_back(lowering.grad_input(kLogits));
      lowering.op(spec(other_ ? OpKind::loss_class_backward : OpKind::loss_softmax_backward, lowering), args,
                  ScaleSource::loss_scale, of);
    }
  }

  LayerPtr on_classes(const Units& classes, int cut, int parts) const override {
    if (dense_ || mixes_ || other_) return nullptr;
    return make_softmax_loss_part(classes, cut, parts, smoothing_);
  }
  // The loss of a place depends on that place alone; dice sums over all places.
  std::optional<RowWindow> row_window() const override {
    if (!dense_ || mixes_) return std::nullopt;
    return RowWindow{};
  }
  std::optional<RowSums> row_sums(const Shape&) const override {
    if (!is_dice()) return std::nullopt;
    return RowSums{.shape = Shape{overlaps_of_sample()}, .per_sample = true};
  }
  LayerPtr on_rows(const Units&, int cut) const override {
    auto part = std::make_shared<SoftmaxLoss>(*this);
    part->cut_ = cut;
    return part;
  }

 private:
  bool is_dice() const { return other_ && other_->loss == ClassLoss::dice; }

  // The sums of dice over the places that are here, and over all of them.
  std::int64_t overlaps_of_sample() const { return ClassLossDims{.N = 1, .K = classes_}.overlaps().elems(); }
  TensorRef overlaps(Lowering& lowering, std::string_view tag) const {
    return lowering.kept(tag, Shape{lowering.batch(), overlaps_of_sample()}, DType::f64);
  }
  TensorRef own_overlaps(Lowering& lowering, int of) const {
    return overlaps(lowering, of == 0 ? "overlaps" : "other overlaps");
  }
  TensorRef all_overlaps(Lowering& lowering, int of) const {
    return cut_ >= 0 ? overlaps(lowering, "overlaps of all rows") : own_overlaps(lowering, of);
  }

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
  int cut_ = -1;  // cut at which spatial shards add the sums of dice; -1: all places are here
};

}  // namespace

LayerPtr make_class_loss(std::int64_t classes, ClassLoss loss, double gamma, bool dense, bool mixes) {
  return std::make_shared<SoftmaxLoss>(classes, 0, dense, mixes, OtherLoss{loss, gamma});
}

LayerPtr make_softmax_loss(std::int64_t classes, double smoothing, bool dense, bool mixes) {
  return std::make_shared<SoftmaxLoss>(classes, smoothing, dense, mixes);
}

}  // namespace echelon::inline model
