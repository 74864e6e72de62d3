// Batch normalisation of channels (Ioffe, Szegedy 2015): (C, H, W) -> (C, H, W), or features (F) as F channels of one
// cell.
//
// In training the statistics are those of one micro-batch on one rank. The running mean and variance are parameters of
// kind `statistic`: their "gradient" is the step's mean over all micro-batches and replicas, each weighted by its
// samples, so that they ride the gradients' exchange and stay equal on all replicas. Evaluation uses them.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/layers/list.hpp"
#include "model/lowering.hpp"

namespace echelon {
namespace {

enum Slot : int { kGamma = 0, kBeta = 1, kMean = 2, kVariance = 3 };

class BatchNorm final : public Layer {
 public:
  explicit BatchNorm(const LayerConfig& config) : epsilon_(config.epsilon), momentum_(config.momentum) {
    if (!(epsilon_ > 0)) throw ConfigError(fmt::format("epsilon = {} must be above 0", epsilon_));
    if (!(momentum_ > 0 && momentum_ <= 1))
      throw ConfigError(fmt::format("momentum = {} must be above 0 and at most 1", momentum_));
  }

  std::string_view kind() const override { return "batch_norm"; }
  std::string attributes() const override { return fmt::format("eps {:g} momentum {:g}", epsilon_, momentum_); }

  std::vector<Shape> infer(std::span<const Shape> inputs) const override {
    if (inputs[0].rank() != 3 && inputs[0].rank() != 1)
      throw ConfigError(fmt::format(
          "batch norm takes images (channels, rows, columns) or features (F), its input is {}", inputs[0].text()));
    return {inputs[0]};
  }

  std::vector<ParameterDecl> parameters(std::span<const Shape> inputs) const override {
    const Shape channels{inputs[0][0]};
    const Init zero{Init::Kind::constant, 0.0}, one{Init::Kind::constant, 1.0};
    return {{"weight", channels, one, false},
            {"bias", channels, zero, false},
            {"running_mean", channels, zero, false, ParameterKind::statistic, momentum_},
            {"running_var", channels, one, false, ParameterKind::statistic, momentum_}};
  }

  void forward(Lowering& lowering) const override {
    const TensorRef x = lowering.input(0), gamma = lowering.parameter(kGamma), beta = lowering.parameter(kBeta);
    if (lowering.training())
      lowering.op(spec(OpKind::norm_local_forward, lowering), {x, gamma, beta, lowering.output(0), stats(lowering)},
                  ScaleSource::one, 0);
    else
      lowering.op(spec(OpKind::norm_inference, lowering),
                  {x, gamma, beta, lowering.parameter(kMean), lowering.parameter(kVariance), lowering.output(0)});
  }

  void backward(Lowering& lowering) const override {
    lowering.op(spec(OpKind::norm_statistics, lowering),
                {stats(lowering), lowering.grad_parameter(kMean), lowering.grad_parameter(kVariance)},
                ScaleSource::group_weight);
    lowering.op(spec(OpKind::norm_local_backward, lowering),
                {lowering.input(0), lowering.grad_output(0), stats(lowering), lowering.parameter(kGamma),
                 lowering.grad_input(0), lowering.grad_parameter(kGamma), lowering.grad_parameter(kBeta)},
                ScaleSource::one, 0);
  }

 private:
  static TensorRef stats(Lowering& lowering) {
    return lowering.kept("stats", Shape{2, lowering.input_shape(0)[1]}, DType::f64);
  }
  OpSpec spec(OpKind kind, const Lowering& lowering) const {
    const Shape x = lowering.input_shape(0);  // (N, C, H, W) or (N, F)
    const bool image = x.rank() == 4;
    return {.kind = kind,
            .dtype = lowering.dtype(),
            .dims = NormDims{.N = x[0], .C = x[1], .H = image ? x[2] : 1, .W = image ? x[3] : 1, .epsilon = epsilon_}};
  }

  double epsilon_, momentum_;
};

}  // namespace

LayerPtr make_batch_norm(const LayerConfig& config) { return std::make_shared<BatchNorm>(config); }

}  // namespace echelon
