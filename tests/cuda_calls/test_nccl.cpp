// SPDX-License-Identifier: Apache-2.0
// exchange.algorithm "nccl" over the stand-in: two ranks as threads, with one GPU each.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/cuda_calls/fixture.hpp"
#include "tests/support/replicas.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

ReplicaRun two_replicas(DType activations) {
  return {.graph = small_batch_norm_net(),
          .shares = {4, 4},
          .algorithm = "nccl",
          .device = "cuda",
          .dtype = DType::f32,
          .activations = activations,
          .steps = 3,
          .bucket_kb = 0.5};
}

}  // namespace

TEST_CASE("nccl: both ranks make the same sums in the same order, on their own GPUs", "[cuda_calls][nccl]") {
  for (const bool late : {false, true})
    for (const DType activations : {DType::f32, DType::bf16}) {
      ledger().begin({.late = late});
      const ReplicaResult result = train_replicas(two_replicas(activations));
      CHECK(result.checksums[0] == result.checksums[1]);
      CHECK(complaints() == "");
      CHECK(ledger().counts()["ncclAllReduce"] >= 6);
      CHECK(ledger().counts()["ncclCommDestroy"] == 2);
    }
}

TEST_CASE("nccl: synchronised batch norm sums on the devices, and the host waits for none of it",
          "[cuda_calls][nccl]") {
  const auto counts_of = [](bool synchronised) {
    ModelConfig norms;
    norms.synchronised_batch_norm = synchronised;
    ReplicaRun run = two_replicas(DType::f32);
    run.graph = small_batch_norm_net(norms);
    ledger().begin({.late = true});
    (void)train_replicas(run);
    CHECK(complaints() == "");
    return ledger().counts();
  };
  auto local = counts_of(false), synchronised = counts_of(true);
  // 3 steps of 2 ranks, 2 layers, forward and backward.
  CHECK(synchronised["ncclAllReduce"] == local["ncclAllReduce"] + 3 * 2 * 2 * 2);
  CHECK(synchronised["cudaMemcpyAsync"] == local["cudaMemcpyAsync"]);  // nothing goes through the host
}

TEST_CASE("nccl: an error while ranks sum ends the run with NCCL's words", "[cuda_calls][nccl]") {
  for (const char* call : {"ncclAllReduce", "ncclCommGetAsyncError"}) {
    ledger().begin({});
    ledger().fail({.call = call, .nth = 3});
    CHECK_THROWS_WITH(train_replicas(two_replicas(DType::f32)),
                      Catch::Contains("NCCL failed") || Catch::Contains("unhandled system error"));
    CHECK(complaints() == "");
  }
}

TEST_CASE("nccl: ranks that share a GPU are told so", "[cuda_calls][nccl]") {
  ledger().begin({.gpus = 1});
  CHECK_THROWS_WITH(train_replicas(two_replicas(DType::f32)), Catch::Contains("ranks 0 and 1 share GPU-"));
  CHECK(complaints() == "");
}
