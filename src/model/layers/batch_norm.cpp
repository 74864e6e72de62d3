// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of channels (Ioffe, Szegedy 2015): (C, H, W) -> (C, H, W), or features (F) as F channels of one
// cell.
//
// In training the statistics are those of one micro-batch on one rank, or, synchronised, of the samples of all
// replicas. The running mean and variance are parameters of kind `statistic`: their "gradient" is the step's mean over
// all micro-batches and replicas, each weighted by its samples, so that they are part of the gradients' exchange and
// stay equal on all replicas. Evaluation uses them; with renorm (Ioffe 2017) training corrects its own statistics
// towards them. A layer whose four parameters are all frozen normalises by its running statistics in training too, and
// is a fixed linear map.
#include <fmt/format.h>

#include <optional>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/layers/window.hpp"
#include "model/lowering.hpp"
#include "model/splits/layer_split.hpp"

namespace echelon::inline model {
namespace {

enum Slot : int { kGamma = 0, kBeta = 1, kMean = 2, kVariance = 3, kSlots = 4 };

class BatchNorm final : public SplittableLayer {
 public:
  explicit BatchNorm(const LayerConfig& config)
      : epsilon_(config.epsilon),
        momentum_(config.momentum),
        synchronised_(config.synchronised),
        renorm_(config.renorm),
        r_max_(config.r_max),
        d_max_(config.d_max) {
    if (!(epsilon_ > 0)) throw ConfigError(fmt::format("epsilon = {} must be above 0", epsilon_));
    if (!(momentum_ > 0 && momentum_ <= 1))
      throw ConfigError(fmt::format("momentum = {} must be above 0 and at most 1", momentum_));
    if (!(r_max_ >= 1)) throw ConfigError(fmt::format("r_max = {} must be at least 1", r_max_));
    if (!(d_max_ >= 0)) throw ConfigError(fmt::format("d_max = {} must be at least 0", d_max_));
  }

  std::string_view kind() const override { return "batch_norm"; }
  std::string attributes(std::span<const Shape>) const override {
    return fmt::format("eps {:g} momentum {:g}{}{}", epsilon_, momentum_, synchronised_ ? " synchronised" : "",
                       renorm_ ? fmt::format(" renorm {:g} {:g}", r_max_, d_max_) : "");
  }

  LayerPtr fused_with(const Layer& next) const override {
    if (next.kind() != "relu" || relu_) return nullptr;
    auto both = std::make_shared<BatchNorm>(*this);
    both->relu_ = true;
    return both;
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs[0].rank() != 1) spatial_axes(inputs[0], "batch norm");
    return {inputs[0]};
  }

  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    const Shape channels{inputs[0][0]};
    const Init zero{Init::Kind::constant, 0.0}, one{Init::Kind::constant, 1.0};
    return {{.suffix = "weight", .shape = channels, .init = one, .decays = false},
            {.suffix = "bias", .shape = channels, .init = zero, .decays = false},
            {.suffix = "running_mean",
             .shape = channels,
             .init = zero,
             .decays = false,
             .kind = ParameterKind::statistic,
             .momentum = momentum_},
            {.suffix = "running_var",
             .shape = channels,
             .init = one,
             .decays = false,
             .kind = ParameterKind::statistic,
             .momentum = momentum_}};
  }

  void forward(Lowering& lowering) const override {
    const TensorRef x = lowering.input(0), gamma = lowering.parameter(kGamma), beta = lowering.parameter(kBeta);
    if (!lowering.training() || is_fixed(lowering))
      lowering.op(spec(OpKind::norm_inference, lowering),
                  {x, gamma, beta, lowering.parameter(kMean), lowering.parameter(kVariance), lowering.output(0)});
    else if (in_parts())
      forward_in_parts(lowering);
    else
      lowering.op(spec(OpKind::norm_local_forward, lowering), {x, gamma, beta, lowering.output(0), stats(lowering)},
                  ScaleSource::one, 0);
  }

  void backward(Lowering& lowering) const override {
    if (is_fixed(lowering)) return backward_fixed(lowering);
    lowering.op(spec(OpKind::norm_statistics, lowering),
                {stats(lowering), lowering.grad_parameter(kMean), lowering.grad_parameter(kVariance)},
                ScaleSource::group_weight);
    if (in_parts()) return backward_in_parts(lowering);
    std::vector<TensorRef> args = {lowering.input(0), lowering.grad_output(0), stats(lowering),
                                   lowering.parameter(kGamma)};
    if (relu_) args.push_back(lowering.parameter(kBeta));
    args.insert(args.end(), {lowering.grad_input(0), lowering.grad_parameter(kGamma), lowering.grad_parameter(kBeta)});
    lowering.op(spec(OpKind::norm_local_backward, lowering), args, ScaleSource::one, 0);
  }

  LayerPtr on_channels(const Units& channels) const override {
    if (cut_ >= 0) return nullptr;
    auto part = std::make_shared<BatchNorm>(*this);
    part->part_ = channels;
    return part;
  }
  std::vector<ParameterSlice> slices(std::span<const Shape>) const override {
    if (!part_) return {};
    return std::vector<ParameterSlice>(kSlots, {.whole = Shape{part_->all}, .offset = Shape{part_->begin}});
  }
  std::optional<RowWindow> row_window() const override { return RowWindow{}; }
  std::optional<RowSums> row_sums(const Shape& output) const override { return RowSums{Shape{2, output[0]}}; }
  LayerPtr on_rows(const Units& rows, int cut) const override {
    auto part = std::make_shared<BatchNorm>(*this);
    part->rows_ = rows;
    part->cut_ = cut;
    return part;
  }

 private:
  // Whether the sums over samples and the normalisation are separate ops, because sums are exchanged or corrected.
  bool in_parts() const { return synchronised_ || renorm_ || cut_ >= 0; }

  static bool is_fixed(const Lowering& lowering) {
    return lowering.frozen(kGamma) && lowering.frozen(kBeta) && lowering.frozen(kMean) && lowering.frozen(kVariance);
  }

  // dx = gamma / sqrt(running variance + epsilon) * dy: the op of evaluation without mean and shift.
  void backward_fixed(Lowering& lowering) const {
    if (!lowering.wants_grad_input(0)) return;
    const Shape x = lowering.input_shape(0);
    TensorRef dy = lowering.grad_output(0);
    if (relu_) {
      const TensorRef behind = lowering.kept("dy behind relu", x, lowering.dtype());
      lowering.op({.kind = OpKind::activation_backward, .dtype = lowering.dtype(), .dims = ActivationDims{.shape = x}},
                  {lowering.output(0), dy, behind});
      dy = behind;
    }
    const TensorRef none = lowering.zeros("no shift", Shape{x[1]}, true), dx = lowering.kept("dx", x, lowering.dtype());
    OpSpec scaled = spec(OpKind::norm_inference, lowering);
    std::get<NormDims>(scaled.dims).relu = false;
    lowering.op(scaled, {dy, lowering.parameter(kGamma), none, none, lowering.parameter(kVariance), dx});
    lowering.give_gradient(0, dx);
  }

  // Turns `sums` over the rows and samples of this rank into those over all rows and samples of one normalisation.
  TensorRef of_all(Lowering& lowering, std::string_view tag, TensorRef sums) const {
    if (cut_ >= 0) {
      const TensorRef own = sums;
      sums = of_channels(lowering, tag, 2, DType::f64);
      lowering.transfer(cut_, own, sums);
      const Shape x = lowering.input_shape(0);
      lowering.count_cells(rows_.all * (x.row_elems() / (x[1] * x[2])));
    }
    if (synchronised_) lowering.sum_over_replicas(sums);
    return sums;
  }

  void forward_in_parts(Lowering& lowering) const {
    const TensorRef x = lowering.input(0), own = of_channels(lowering, "sums", 2, DType::f64);
    lowering.op(spec(OpKind::norm_moments, lowering), {x, own});
    const TensorRef sums = of_all(lowering, "sums of all rows", own);
    if (renorm_)
      lowering.op(spec(OpKind::norm_renorm, lowering),
                  {sums, lowering.parameter(kGamma), lowering.parameter(kBeta), lowering.parameter(kMean),
                   lowering.parameter(kVariance), gamma(lowering), beta(lowering), correction(lowering)});
    lowering.op(spec(OpKind::norm_normalise, lowering),
                {x, gamma(lowering), beta(lowering), sums, lowering.output(0), stats(lowering)});
  }

  void backward_in_parts(Lowering& lowering) const {
    const TensorRef x = lowering.input(0), dy = lowering.grad_output(0);
    const TensorRef own = of_channels(lowering, "gradient sums", 2, DType::f64);
    const DType dtype = wide_of(lowering.dtype());
    const TensorRef dgamma = renorm_ ? of_channels(lowering, "dgamma2", 1, dtype) : lowering.grad_parameter(kGamma);
    const TensorRef dbeta = renorm_ ? of_channels(lowering, "dbeta2", 1, dtype) : lowering.grad_parameter(kBeta);
    std::vector<TensorRef> sums_of = {x, dy, stats(lowering)}, apply = {x, dy, stats(lowering), gamma(lowering)};
    if (relu_) {
      sums_of.insert(sums_of.end(), {gamma(lowering), beta(lowering)});
      apply.push_back(beta(lowering));
    }
    sums_of.insert(sums_of.end(), {own, dgamma, dbeta});
    lowering.op(spec(OpKind::norm_backward_sums, lowering), sums_of);
    const TensorRef sums = of_all(lowering, "gradient sums of all rows", own);
    if (renorm_)
      lowering.op(
          spec(OpKind::norm_renorm_backward, lowering),
          {dgamma, dbeta, correction(lowering), lowering.grad_parameter(kGamma), lowering.grad_parameter(kBeta)});
    apply.insert(apply.end(), {sums, lowering.grad_input(0)});
    lowering.op(spec(OpKind::norm_backward_apply, lowering), apply);
  }

  static TensorRef of_channels(Lowering& lowering, std::string_view tag, std::int64_t rows, DType dtype) {
    const std::int64_t C = lowering.input_shape(0)[1];
    return lowering.kept(tag, rows == 1 ? Shape{C} : Shape{rows, C}, dtype);
  }
  static TensorRef stats(Lowering& lowering) { return of_channels(lowering, "stats", 2, DType::f64); }
  static TensorRef correction(Lowering& lowering) {
    return of_channels(lowering, "correction", 2, wide_of(lowering.dtype()));
  }
  // The scale and shift of x: the parameters, or with renorm the corrected ones.
  TensorRef gamma(Lowering& lowering) const {
    return renorm_ ? of_channels(lowering, "gamma2", 1, wide_of(lowering.dtype())) : lowering.parameter(kGamma);
  }
  TensorRef beta(Lowering& lowering) const {
    return renorm_ ? of_channels(lowering, "beta2", 1, wide_of(lowering.dtype())) : lowering.parameter(kBeta);
  }
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    const Shape x = lowering.input_shape(0);  // (N, C, spatial axes) or (N, F)
    const SpatialExtents cells = extents_of(x, 2);
    return {.kind = kind,
            .dtype = lowering.dtype(),
            .dims = NormDims{.N = x[0],
                             .C = x[1],
                             .H = cells.d * cells.h,
                             .W = cells.w,
                             .epsilon = epsilon_,
                             .relu = relu_,
                             .r_max = r_max_,
                             .d_max = d_max_}};
  }

  double epsilon_, momentum_;
  bool synchronised_, renorm_;
  double r_max_, d_max_;
  bool relu_ = false;
  std::optional<Units> part_;  // the channels of a part; none: all
  Units rows_;                 // the rows of a spatial shard
  int cut_ = -1;               // cut at which spatial shards sum over all rows; -1: all rows are here
};

}  // namespace

LayerPtr make_batch_norm(const LayerConfig& config) { return std::make_shared<BatchNorm>(config); }

}  // namespace echelon::inline model
