#include "tests/support/device_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/support/oracle.hpp"
#include "tests/support/random.hpp"

namespace echelon::test {
namespace {

std::vector<double> affine(std::vector<double> values, double factor, double shift) {
  for (double& value : values) value = factor * value + shift;
  return values;
}

// mean and 1/std of each channel of x: what a local forward would have left.
std::vector<double> true_stats(const NormDims& d, const std::vector<double>& x) {
  const auto C = static_cast<std::size_t>(d.C), plane = static_cast<std::size_t>(d.H * d.W);
  std::vector<double> sum(C), squares(C), stats(2 * C);
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum[i / plane % C] += x[i];
    squares[i / plane % C] += x[i] * x[i];
  }
  const auto count = static_cast<double>(d.N * d.H * d.W);
  for (std::size_t c = 0; c < C; ++c) {
    stats[c] = sum[c] / count;
    stats[C + c] = 1 / std::sqrt(std::max(0.0, squares[c] / count - stats[c] * stats[c]) + d.epsilon);
  }
  return stats;
}

// Statistics of a group of which this micro-batch is a part: any mean, any positive variance.
std::vector<double> norm_input(const OpSpec& spec, const ArgInfo& arg, const Trial& trial, const Values& before,
                               const std::vector<double>& random) {
  const auto& d = std::get<NormDims>(spec.dims);
  const auto C = static_cast<std::size_t>(d.C);
  if (arg.name == "var") return affine(random, 0.5, 1);
  if (arg.name == "stats") {
    if (spec.kind == OpKind::norm_local_backward) return true_stats(d, before[0]);
    std::vector<double> stats = random;
    for (std::size_t c = C; c < 2 * C; ++c) stats[c] = 1 + 0.5 * stats[c];
    return stats;
  }
  if (arg.name == "sums") {
    std::vector<double> sums = affine(random, trial.group_count(d), 0);
    if (spec.kind == OpKind::norm_normalise || spec.kind == OpKind::norm_renorm)
      for (std::size_t c = 0; c < C; ++c) {
        const double mean = random[c], var = 1 + 0.5 * random[C + c];
        sums[C + c] = (var + mean * mean) * trial.group_count(d);
      }
    return sums;
  }
  return random;
}

// Places of the sequences whose lengths an op takes.
std::int64_t longest(const OpSpec& spec) {
  if (const auto* attention = std::get_if<AttentionDims>(&spec.dims)) return attention->S;
  if (const auto* rnn = std::get_if<RnnDims>(&spec.dims))
    return rnn->first + rnn->T + (rnn->first > 0 ? 2 : 0);  // behind a chunk more
  if (const auto* step = std::get_if<RnnStepDims>(&spec.dims)) return step->first + step->T;
  if (const auto* step = std::get_if<PlaceStepDims>(&spec.dims)) return step->first + step->T;
  return std::get<SequencePoolDims>(spec.dims).T;
}

// Weights that keep states of size 1; for a backward op the very y of its inputs. In halves each unit of relu is
// clearly on or clearly off: at a kink rounding would decide, and the gradient could be anything.
std::vector<double> rnn_input(const OpSpec& spec, const ArgInfo& arg, const Values& before,
                              const std::vector<double>& random) {
  const bool no_kinks = is_half(spec.dtype) && std::get<RnnDims>(spec.dims).cell == Cell::relu;
  if (arg.name == "weight_x" || arg.name == "weight_h")
    return affine(random, (no_kinks ? 0.3 : 1.5) / std::sqrt(static_cast<double>(arg.shape[1])), 0);
  if (arg.name == "bias_x" && no_kinks) {
    std::vector<double> bias = random;
    for (double& value : bias) value += value < 0 ? -3 : 3;
    return bias;
  }
  if (arg.name != "y") return random;
  OpSpec forward = spec;
  forward.kind = OpKind::rnn_forward;
  forward.dtype = DType::f64;
  return oracle_outputs(forward, before)[0];
}

}  // namespace

std::vector<double> make_input(const OpSpec& spec, const ArgInfo& arg, const Trial& trial, const Values& before) {
  const std::string name = fmt::format("{}/{}/{}", spec.text(), trial.name, arg.name);
  const std::size_t n = elems(arg.shape);
  const std::vector<double> random = random_values(n, name);
  if (arg.name == "labels") {
    const auto* part = std::get_if<SoftmaxPartDims>(&spec.dims);
    const auto labels = random_integers(n, 0, (part ? part->classes : std::get<SoftmaxDims>(spec.dims).K) - 1, name);
    return {labels.begin(), labels.end()};
  }
  if (arg.name == "partials") {  // of each label: any logit, 0 or 1, a sum from 1, any product
    std::vector<double> partials = affine(random, 3, 0);
    for (std::size_t i = 1; i < n; i += SoftmaxPartDims::kPartials) partials[i] = partials[i] < 0 ? 0 : 1;
    for (std::size_t i = 2; i < n; i += SoftmaxPartDims::kPartials) partials[i] = 1 + std::fabs(partials[i]);
    return partials;
  }
  if (arg.name == "targets") {
    const bool logistic = std::get<ValueLossDims>(spec.dims).loss == ValueLoss::logistic;
    std::vector<double> targets = affine(random, 2, 0);
    if (logistic)
      for (double& target : targets) target = target < 0 ? 0 : 1;
    return targets;
  }
  if (arg.name == "lengths") {
    const auto lengths = random_integers(n, 1, longest(spec), name);
    return {lengths.begin(), lengths.end()};
  }
  if (arg.name == "weights") {
    std::vector<double> weights;
    for (double value : random) weights.push_back(value < 0.5 ? 1 : 0);
    return weights;
  }
  if (const auto* d = std::get_if<EmbeddingDims>(&spec.dims); d && arg.name == "ids") {
    const auto ids = random_integers(n, 0, 2 * d->first + d->V - 1, name);
    return {ids.begin(), ids.end()};
  }
  if (std::holds_alternative<RnnStepDims>(spec.dims) && arg.name == "weight_h")
    return affine(random, 1.5 / std::sqrt(static_cast<double>(arg.shape[1])), 0);
  if (std::holds_alternative<RnnDims>(spec.dims)) return rnn_input(spec, arg, before, random);
  if (arg.name == "ids" || arg.dtype == DType::i32) {
    const auto ids = random_integers(n, -2'000'000'000, 2'000'000'000, name);
    return {ids.begin(), ids.end()};
  }
  if (const auto* d = std::get_if<LayerNormDims>(&spec.dims); d && arg.name == "stats") {
    std::vector<double> stats = random;  // of rows with any mean and a positive variance
    for (std::size_t r = n / 2; r < n; ++r) stats[r] = 1 + 0.5 * stats[r];
    return stats;
  }
  if (arg.name == "logits") return affine(random, 4, 0);
  if (arg.name == "probs") return affine(random, 0.5, 0.5);
  if (spec.kind == OpKind::activation_backward && arg.name == "y") {
    std::vector<double> y = random;
    const Activation function = std::get<ActivationDims>(spec.dims).function;
    if (function == Activation::relu)
      for (double& value : y) value = std::max(0.0, value);
    return function == Activation::sigmoid ? affine(y, 0.5, 0.5) : y;
  }
  if (std::holds_alternative<NormDims>(spec.dims)) return norm_input(spec, arg, trial, before, random);
  return random;
}

void clear_kinks(const OpSpec& spec, Values& inputs) {
  const auto* d = std::get_if<NormDims>(&spec.dims);
  const std::vector<ArgInfo> args = signature(spec);
  const auto of = [&](std::string_view name) { return static_cast<std::size_t>(place_of(args, name)); };
  if (!d || !d->relu || place_of(args, "dy") < 0) return;
  const double near = is_half(spec.dtype) ? 2e-2 : 1e-4;
  const std::vector<double>&x = inputs[of("x")], &stats = inputs[of("stats")];
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto c = i / static_cast<std::size_t>(d->H * d->W) % static_cast<std::size_t>(d->C);
    const double xhat = (x[i] - stats[c]) * stats[static_cast<std::size_t>(d->C) + c];
    if (std::fabs(inputs[of("gamma")][c] * xhat + inputs[of("beta")][c]) < near) inputs[of("dy")][i] = 0;
  }
}

}  // namespace echelon::test
