// SPDX-License-Identifier: Apache-2.0
// Programs launched as CUDA graphs on a real GPU.
#include <catch2/catch.hpp>
#include <cstdio>

#include "base/checksum.hpp"
#include "base/clock.hpp"
#include "device/device.hpp"
#include "model/zoo/zoo.hpp"
#include "tests/cuda/gpu.hpp"
#include "tests/support/replicas.hpp"
#include "tests/support/trainer.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

TrainerOptions on_gpu(DType activations, bool replay) {
  return {.device = "cuda", .dtype = DType::f32, .activations = activations, .replay = replay};
}

std::vector<NamedGraph> models() {
  std::vector<NamedGraph> all = small_sequence_models();
  all.push_back({"cnn_32_64", small_cnn()});
  all.push_back({"dropout", small_dropout_net()});
  all.push_back({"batch norm", small_batch_norm_net()});
  return all;
}

constexpr std::int64_t kBatch = 4;

// A step of two micro-batches, the second adding; one weight moves after it.
std::vector<double> step(Trainer& trainer, std::int64_t number) {
  const PlainBatch batch = hashed_batch(form_of(trainer.graph()), number * 2 * kBatch, 2 * kBatch, 1);
  trainer.set_step(number);
  trainer.set_loss_scale(number < 4 ? 256 : 128);
  trainer.gradients(part_of(batch, 0, kBatch), 2 * kBatch, true);
  trainer.gradients(part_of(batch, kBatch, kBatch), 2 * kBatch, false);
  trainer.write_weight(number, 0.01 * static_cast<double>(number));
  return trainer.read_gradients();
}

}  // namespace

TEST_CASE("CUDA graphs give the same bits as launches one by one", "[cuda]") {
  if (without_gpu()) return;
  for (const NamedGraph& model : models())
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      INFO(model.name << " " << name_of(dtype));
      Trainer graphs(model.graph, kBatch, on_gpu(dtype, true)), launches(model.graph, kBatch, on_gpu(dtype, false));
      for (std::int64_t number = 0; number < 8; ++number) CHECK(step(graphs, number) == step(launches, number));
    }
}

TEST_CASE("what a CUDA graph saves of a small step, and that it learns the same", "[cuda]") {
  if (without_gpu()) return;
  const Graph graph = build_zoo("resnet20", labelled({3, 32, 32}, 10));
  const PlainBatch batch = hashed_batch(form_of(graph), 0, kBatch, 1);
  std::vector<double> losses;
  std::vector<std::uint64_t> checksums;
  for (bool replay : {false, true}) {
    const std::unique_ptr<Device> device = open_device("cuda", {});
    Arenas arenas(*device, graph.parameters(), DType::f32);
    Program program(graph, arenas, {.batch = kBatch, .dtype = DType::bf16, .replay = replay});
    arenas.initialise(1);
    load_batch(*device, program, batch);
    double fastest = 1e30;
    for (int pass = 0; pass < 20; ++pass) {
      const double start = now_s();
      program.forward({});
      program.backward({});
      device->synchronize();
      fastest = std::min(fastest, now_s() - start);
    }
    std::printf("resnet20, %d images, bf16: %.3f ms a pass %s\n", static_cast<int>(kBatch), 1e3 * fastest,
                replay ? "as graphs" : "launched one by one");
    losses.push_back(program.losses().loss);
    std::vector<float> gradients(static_cast<std::size_t>(arenas.elems()));
    device->to_host(gradients.data(), arenas.gradients_at(0), gradients.size() * sizeof(float));
    checksums.push_back(checksum64(gradients.data(), gradients.size() * sizeof(float)));
    CHECK(losses.back() > 0);
  }
  CHECK(losses[0] == losses[1]);
  CHECK(checksums[0] == checksums[1]);
}
