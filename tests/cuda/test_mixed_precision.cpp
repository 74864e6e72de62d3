// SPDX-License-Identifier: Apache-2.0
// Training in halves on a real GPU.
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
#include "tests/support/mixed_precision.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

const DeviceMaker kGpu = [] { return open_device("cuda", {}); };

}  // namespace

TEST_CASE("gradients in halves are those of f64 but for rounding, weights stay f32", "[cuda]") {
  if (without_gpu()) return;
  for (const Half half : {kF16, kBf16}) check_mixed_images(kGpu, half);
}

TEST_CASE("models of sequences compute in halves but for their losses", "[cuda]") {
  if (without_gpu()) return;
  for (const Half half : {kF16, kBf16}) {
    check_mixed_sequences(kGpu, half);
    check_mixed_states(kGpu, half);
  }
}

TEST_CASE("convolutions of halves lie channels last, with few reorders between them", "[cuda]") {
  if (without_gpu()) return;
  const Graph graph = build_zoo("resnet20", labelled({3, 32, 32}, 10));
  Trainer mixed(graph, 4, {.dtype = DType::f32, .activations = DType::bf16}, kGpu());
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
  // Those of the samples, the logits, the gradient of the logits, and plain values before the dense layer.
  CHECK(reorders <= 6);
}

TEST_CASE("training in halves follows training in f32", "[cuda]") {
  if (without_gpu()) return;
  check_mixed_training(kGpu, kBf16, {});
  check_mixed_training(kGpu, kF16, {.dynamic = true, .start = 65536});
}

TEST_CASE("what overflows in f16 is seen, skipped and scaled away", "[cuda]") {
  if (without_gpu()) return;
  const Graph graph = small_cnn();
  Trainer trainer = mixed_trainer(graph, kGpu, DType::f16);
  OptimiserConfig config;
  Optimiser optimiser(config, trainer.arenas(), {.dynamic = true, .start = 0x1p24});
  int skipped = 0;
  for (std::int64_t step = 0; step < 16; ++step) {
    const auto before = trainer.read_weights();
    optimiser.begin_step(step, 0.01);
    trainer.set_loss_scale(optimiser.loss_scale());
    trainer.gradients(mixed_batch(graph, step), kMixedBatch, true);
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
