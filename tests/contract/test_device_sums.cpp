// SPDX-License-Identifier: Apache-2.0
// exchange.algorithm "nccl" on stand-ins for devices that sum by themselves: the sums have the bits of adding in the
// order of ranks, all ranks submit in one order, and unsuitable settings are refused.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "comm/collective/algorithms.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

ReplicaRun summed(std::size_t replicas, const std::string& algorithm, const std::string& device) {
  return {.graph = small_batch_norm_net(),
          .shares = std::vector<std::int64_t>(replicas, 4),
          .algorithm = algorithm,
          .device = device,
          .steps = 8,
          .bucket_kb = 0.5};
}

void check_same(ReplicaRun run) {
  run.algorithm = "nccl", run.device = "discrete";
  const ReplicaResult on_devices = train_replicas(run);
  run.algorithm = "naive", run.device = "reference";
  const ReplicaResult on_hosts = train_replicas(run);
  CHECK(on_devices.gradients == on_hosts.gradients);
  CHECK(on_devices.weights == on_hosts.weights);
  CHECK(on_devices.skipped == on_hosts.skipped);
  for (const std::uint64_t checksum : on_devices.checksums) CHECK(checksum == on_devices.checksums.front());
  CHECK(on_devices.sent_bytes == 0);
}

std::string refusal(const ReplicaRun& run) {
  try {
    train_replicas(run);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("sums on devices: the bits of sums in the order of ranks", "[contract][equality]") {
  for (const std::size_t replicas : {1, 2, 3, 5})
    for (const Overlap overlap : {Overlap::none, Overlap::buckets, Overlap::layers})
      for (const DType dtype : {DType::f32, DType::f64})
        DYNAMIC_SECTION(replicas << " " << static_cast<int>(overlap) << " " << name_of(dtype)) {
          ReplicaRun run = summed(replicas, "", "");
          run.overlap = overlap, run.dtype = run.activations = dtype;
          check_same(run);
        }
}

TEST_CASE("sums on devices: clipped norms, scaled losses, tables", "[contract][equality]") {
  ReplicaRun clipped = summed(3, "", "");
  clipped.clip_norm = 0.1;
  check_same(clipped);
  ReplicaRun scaled = summed(2, "", "");
  scaled.scaling = {.dynamic = true, .start = 65536};
  check_same(scaled);
  for (NamedGraph& model : small_sequence_models())
    if (std::string(model.name) == "wordlstm") {
      ReplicaRun tables = summed(2, "", "");
      tables.graph = model.graph;
      check_same(tables);
    }
}

// Batch norm's sums stand among those of gradients; the stand-in fails where ranks differ in their order.
TEST_CASE("sums on devices: synchronised batch norm", "[contract][equality]") {
  ModelConfig norms;
  norms.synchronised_batch_norm = true;
  for (const std::size_t replicas : {2, 3})
    for (const Overlap overlap : {Overlap::none, Overlap::buckets, Overlap::layers})
      for (const DType dtype : {DType::f32, DType::f64})
        DYNAMIC_SECTION(replicas << " " << static_cast<int>(overlap) << " " << name_of(dtype)) {
          ReplicaRun run = summed(replicas, "", "");
          run.graph = small_batch_norm_net(norms);
          run.overlap = overlap, run.dtype = run.activations = dtype;
          check_same(run);
        }
}

TEST_CASE("sums on devices are refused where there are none, and where they cannot be", "[contract]") {
  CHECK_THAT(refusal(summed(2, "nccl", "reference")),
             Catch::Contains("device 'reference' is not a GPU") && Catch::Contains("'mpi'"));
  ReplicaRun run = summed(1, "nccl", "onednn");
  run.dtype = run.activations = DType::f32;
  CHECK_THAT(refusal(run), Catch::Contains("device 'onednn' is not a GPU"));
  run = summed(3, "nccl", "discrete");
  run.card = "GPU-1";
  CHECK_THAT(refusal(run), Catch::Contains("ranks 0 and 1 share GPU-1") && Catch::Contains("'ring'"));
  run.card = "bare";
  CHECK_THAT(refusal(run), Catch::Contains("no library is here"));
  run = summed(2, "nccl", "discrete");
  run.codec = "fp16", run.dtype = run.activations = DType::f32;
  CHECK_THAT(refusal(run), Catch::Contains("cannot be combined") && Catch::Contains("'ring'"));
  CHECK_THROWS_WITH(make_allreduce("nccl", {.rank = 0, .ranks = 2, .elems = 1}), Catch::Contains("no plan"));
}

}  // namespace echelon
