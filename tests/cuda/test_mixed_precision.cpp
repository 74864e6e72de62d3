// Training in halves on a real GPU: what the ops' contract does not see.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "model/zoo/zoo.hpp"
#include "optim/optimiser.hpp"
#include "tests/cuda/gpu.hpp"
#include "tests/support/device_contract.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/trainer.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

constexpr std::int64_t kBatch = 12;

// Always the same samples: where rounding moves a maximum or a kink, gradients may differ by anything.
PlainBatch batch_of(const Graph& graph, std::int64_t step) {
  return hashed_batch(form_of(graph), step * kBatch, kBatch, 1);
}

TrainerOptions on_gpu(DType activations) { return {.device = "cuda", .dtype = DType::f32, .activations = activations}; }

struct Half {
  DType dtype;
  double tolerance;
};
constexpr Half kHalves[] = {{DType::f16, 0.05}, {DType::bf16, 0.2}};

// |a/scale - b| / |b| over all weights' gradients.
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

// Ten steps as the strategy takes them; the loss of each.
std::vector<double> run_training(const Graph& graph, const TrainerOptions& options, const LossScaling& scaling) {
  Trainer trainer(graph, kBatch, options);
  OptimiserConfig config;
  Optimiser optimiser(config, trainer.arenas(), scaling);
  const ArenaRange all{0, trainer.arenas().elems()};
  const PlainBatch batch = batch_of(graph, 0);
  std::vector<double> losses;
  for (std::int64_t step = 0; step < 10; ++step) {
    optimiser.begin_step(step, 0.02);
    trainer.set_loss_scale(optimiser.loss_scale());
    trainer.program().reset_losses();
    trainer.gradients(batch, kBatch, true);
    losses.push_back(trainer.program().losses().loss / kBatch);
    if (optimiser.accept() == Optimiser::Verdict::apply) optimiser.apply(all);
  }
  return losses;
}

// One micro-batch of `graph` in halves against f64: loss, gradients, the same bits again.
void check_gradients(const Graph& graph, Half half) {
  const PlainBatch batch = batch_of(graph, 0);
  Trainer exact(graph, kBatch, {.dtype = DType::f64}), mixed(graph, kBatch, on_gpu(half.dtype));
  CHECK(mixed.loss(batch) == Approx(exact.loss(batch)).epsilon(half.tolerance));
  exact.gradients(batch, kBatch, true);
  mixed.set_loss_scale(256);
  mixed.gradients(batch, kBatch, true);
  const auto scaled = mixed.read_gradients();
  CHECK(distance_but_for(256, graph.parameters(), scaled, exact.read_gradients()) < half.tolerance);
  mixed.gradients(batch, kBatch, true);
  CHECK(mixed.read_gradients() == scaled);
}

bool is_loss(OpKind kind) { return std::string(name_of(kind)).rfind("loss_", 0) == 0; }

}  // namespace

TEST_CASE("gradients in halves are those of f64 but for rounding, weights stay f32", "[cuda]") {
  if (without_gpu()) return;
  for (const Graph& graph : {small_lenet(), small_batch_norm_net(), small_dropout_net()})
    for (const Half half : kHalves) {
      INFO(name_of(half.dtype));
      check_gradients(graph, half);
      Trainer mixed(graph, kBatch, on_gpu(half.dtype));
      const std::string logits = graph.nodes()[graph.nodes().size() - 2].name;
      CHECK(mixed.program().value(logits).dtype == DType::f32);
    }
}

TEST_CASE("models of sequences compute in halves but for their losses", "[cuda]") {
  if (without_gpu()) return;
  const auto device = open_device("cuda", {});
  for (const NamedGraph& model : small_sequence_models())
    for (const Half half : kHalves) {
      INFO(model.name << " " << name_of(half.dtype));
      check_gradients(model.graph, half);
      Trainer mixed(model.graph, kBatch, on_gpu(half.dtype));
      for (const OpReport& op : mixed.program().ops()) {
        if (op.spec.kind == OpKind::reorder || is_loss(op.spec.kind)) continue;
        INFO(op.spec.text());
        CHECK(is_half(op.spec.dtype) == device->has(op.spec.kind, half.dtype));
      }
    }
}

TEST_CASE("convolutions of halves lie channels last, with few reorders between them", "[cuda]") {
  if (without_gpu()) return;
  const Graph graph = build_zoo("resnet20", labelled({3, 32, 32}, 10));
  Trainer mixed(graph, 4, on_gpu(DType::bf16));
  int convolutions = 0, last = 0, reorders = 0;
  for (const OpReport& op : mixed.program().ops()) {
    reorders += op.spec.kind == OpKind::reorder ? 1 : 0;
    if (!std::holds_alternative<ConvDims>(op.spec.dims)) continue;
    ++convolutions;
    last += op.spec.layouts[0] == Layout::channels_last ? 1 : 0;
    CHECK(is_half(op.spec.dtype));
  }
  std::printf("resnet20 in bf16: %d convolutions, %d channels last, %d reorders\n", convolutions, last, reorders);
  CHECK(last == convolutions);
  // The samples, the logits, the gradient of the logits, and what is plain before the dense layer.
  CHECK(reorders <= 6);
}

TEST_CASE("training in halves follows training in f32", "[cuda]") {
  if (without_gpu()) return;
  const Graph graph = small_batch_norm_net();
  const auto wide = run_training(graph, on_gpu(DType::f32), {});
  const auto bf16 = run_training(graph, on_gpu(DType::bf16), {});
  const auto f16 = run_training(graph, on_gpu(DType::f16), {.dynamic = true, .start = 65536});
  for (std::size_t step = 0; step < wide.size(); ++step) {
    CHECK(bf16[step] == Approx(wide[step]).margin(0.05));
    CHECK(f16[step] == Approx(wide[step]).margin(0.05));
  }
  CHECK(wide.back() < wide.front());
}

TEST_CASE("what overflows in f16 is seen, skipped and scaled away", "[cuda]") {
  if (without_gpu()) return;
  const Graph graph = small_lenet();
  Trainer trainer(graph, kBatch, on_gpu(DType::f16));
  OptimiserConfig config;
  Optimiser optimiser(config, trainer.arenas(), {.dynamic = true, .start = 0x1p24});
  int skipped = 0;
  for (std::int64_t step = 0; step < 16; ++step) {
    const auto before = trainer.read_weights();
    optimiser.begin_step(step, 0.01);
    trainer.set_loss_scale(optimiser.loss_scale());
    trainer.gradients(batch_of(graph, step), kBatch, true);
    const bool skip = optimiser.accept() == Optimiser::Verdict::skip;
    if (!skip) optimiser.apply({0, trainer.arenas().elems()});
    CHECK((trainer.read_weights() == before) == skip);
    skipped += skip ? 1 : 0;
  }
  CHECK(skipped > 2);
  CHECK(skipped < 14);
  for (double weight : trainer.read_weights()) REQUIRE(std::isfinite(weight));
}

TEST_CASE("TF32 is off unless asked for, and then costs three digits", "[cuda][slow]") {
  if (without_gpu()) return;
  DeviceOptions options;
  options.tf32 = true;
  const auto device = open_device("cuda", options);
  for (const OpSpec& spec : contract_specs(DType::f32)) {
    if (!std::holds_alternative<ConvDims>(spec.dims) && !std::holds_alternative<DenseDims>(spec.dims)) continue;
    const OpCheck check = check_op(*device, spec, 3e-3);
    INFO(check.message);
    CHECK(check.ok);
  }
}
