// SPDX-License-Identifier: Apache-2.0
#include "tests/support/mixed_precision.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "optim/optimiser.hpp"
#include "tests/support/split_models.hpp"

namespace echelon::test {
namespace {

// Returns |a / scale - b| / |b| over the gradients of all weights.
double distance_but_for(double scale, const ParameterSet& parameters, const std::vector<double>& a,
                        const std::vector<double>& b) {
  double apart = 0, size = 0;
  for (const Parameter& p : parameters.all())
    for (auto i = static_cast<std::size_t>(p.begin); i < static_cast<std::size_t>(p.end()); ++i) {
      if (p.kind != ParameterKind::weight) continue;
      apart += (a[i] / scale - b[i]) * (a[i] / scale - b[i]);
      size += b[i] * b[i];
    }
  return std::sqrt(apart / size);
}

bool is_loss(OpKind kind) { return std::string(name_of(kind)).starts_with("loss_"); }

}  // namespace

PlainBatch mixed_batch(const Graph& graph, std::int64_t step) {
  return hashed_batch(form_of(graph), step * kMixedBatch, kMixedBatch, 1);
}

Trainer mixed_trainer(const Graph& graph, const DeviceMaker& open, DType activations) {
  return Trainer(graph, kMixedBatch, {.dtype = DType::f32, .activations = activations}, open());
}

void check_mixed_gradients(const Graph& graph, const DeviceMaker& open, Half half) {
  const PlainBatch batch = mixed_batch(graph, 0);
  Trainer exact(graph, kMixedBatch, {.dtype = DType::f64}), mixed = mixed_trainer(graph, open, half.dtype);
  CHECK(mixed.loss(batch) == Approx(exact.loss(batch)).epsilon(half.tolerance));
  exact.gradients(batch, kMixedBatch, true);
  mixed.set_loss_scale(256);
  mixed.gradients(batch, kMixedBatch, true);
  const auto scaled = mixed.read_gradients();
  const double apart = distance_but_for(256, graph.parameters(), scaled, exact.read_gradients());
  CHECK(apart < half.tolerance);
  CHECK(apart > 1e-5);  // activations were rounded to halves: two f32 runs are only 1e-7 apart
  mixed.gradients(batch, kMixedBatch, true);
  CHECK(mixed.read_gradients() == scaled);
}

void check_mixed_images(const DeviceMaker& open, Half half) {
  for (const Graph& graph : {small_cnn(), small_batch_norm_net(), small_dropout_net()}) {
    INFO(name_of(half.dtype));
    check_mixed_gradients(graph, open, half);
    Trainer mixed = mixed_trainer(graph, open, half.dtype);
    const std::string logits = graph.nodes()[graph.nodes().size() - 2].name;
    CHECK(mixed.program().value(logits).dtype == DType::f32);
  }
}

void check_mixed_sequences(const DeviceMaker& open, Half half) {
  const auto device = open();
  for (const NamedGraph& model : small_sequence_models()) {
    INFO(model.name << " " << name_of(half.dtype));
    check_mixed_gradients(model.graph, open, half);
    Trainer mixed = mixed_trainer(model.graph, open, half.dtype);
    for (const OpReport& op : mixed.program().ops()) {
      if (op.spec.kind == OpKind::reorder || is_loss(op.spec.kind)) continue;
      INFO(op.spec.text());
      CHECK(is_half(op.spec.dtype) == device->has(op.spec.kind, half.dtype));
    }
  }
}

void check_mixed_states(const DeviceMaker& open, Half half) {
  const Graph graph = small_carrying_stack();
  const PlainBatch batch = mixed_batch(graph, 0);
  Trainer exact(graph, kMixedBatch, {.dtype = DType::f64}), mixed = mixed_trainer(graph, open, half.dtype);
  const double first = exact.loss(batch), second = exact.loss(batch);
  CHECK(std::fabs(mixed.loss(batch) - first) < 0.2 * std::fabs(second - first));
  CHECK(std::fabs(mixed.loss(batch) - second) < 0.2 * std::fabs(second - first));
}

std::vector<double> mixed_losses(const Graph& graph, const DeviceMaker& open, DType activations,
                                 const LossScaling& scaling) {
  Trainer trainer = mixed_trainer(graph, open, activations);
  OptimiserConfig config;
  Optimiser optimiser(config, trainer.arenas(), scaling);
  const ArenaRange all{0, trainer.arenas().elems()};
  const PlainBatch batch = mixed_batch(graph, 0);
  std::vector<double> losses;
  for (std::int64_t step = 0; step < 10; ++step) {
    optimiser.begin_step(step, 0.02);
    trainer.set_loss_scale(optimiser.loss_scale());
    trainer.program().reset_losses();
    trainer.gradients(batch, kMixedBatch, true);
    losses.push_back(trainer.program().losses().loss / kMixedBatch);
    if (optimiser.accept() == Optimiser::Verdict::apply) optimiser.apply(all);
  }
  return losses;
}

void check_mixed_training(const DeviceMaker& open, Half half, const LossScaling& scaling) {
  const Graph graph = small_batch_norm_net();
  const auto wide = mixed_losses(graph, open, DType::f32, {});
  const auto mixed = mixed_losses(graph, open, half.dtype, scaling);
  for (std::size_t step = 0; step < wide.size(); ++step) CHECK(mixed[step] == Approx(wide[step]).margin(0.05));
  CHECK(wide.back() < wide.front());
}

}  // namespace echelon::test
