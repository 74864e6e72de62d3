// SPDX-License-Identifier: Apache-2.0
// exchange.algorithm "nccl" on real GPUs: two ranks as threads with one GPU each; on one GPU, how sharing it is
// refused.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "device/device.hpp"
#include "tests/cuda/gpu.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

ReplicaRun two_replicas(const std::string& algorithm, DType dtype) {
  return {.graph = small_batch_norm_net(),
          .shares = {4, 4},
          .algorithm = algorithm,
          .device = "cuda",
          .dtype = dtype,
          .activations = dtype,
          .steps = 8,
          .bucket_kb = 0.5};
}

}  // namespace

TEST_CASE("nccl: of two terms the sum that the host makes", "[cuda][nccl]") {
  if (without_gpus(2)) return;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const ReplicaResult on_gpus = train_replicas(two_replicas("nccl", dtype));
    const ReplicaResult on_hosts = train_replicas(two_replicas("naive", dtype));
    CHECK(on_gpus.weights == on_hosts.weights);
    CHECK(on_gpus.checksums[0] == on_gpus.checksums[1]);
  }
}

TEST_CASE("nccl: ranks that share a GPU are told so", "[cuda][nccl]") {
  if (without_gpu()) return;
  // One rank more than there are GPUs: the last one uses the GPU of rank 0.
  ReplicaRun run = two_replicas("nccl", DType::f32);
  run.shares.assign(static_cast<std::size_t>(visible_gpus()) + 1, 4);
  CHECK_THROWS_WITH(train_replicas(run), Catch::Contains(fmt::format("ranks 0 and {} share GPU-", visible_gpus())) ||
                                             Catch::Contains("NCCL cannot be loaded"));
}

}  // namespace echelon
