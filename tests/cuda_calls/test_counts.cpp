// SPDX-License-Identifier: Apache-2.0
// The overhead of a training step: memory allocated, waits for the device, objects made. Counted as the difference
// between runs that differ by a few steps, by the production step over one replica.
#include <catch2/catch.hpp>
#include <cstdio>

#include "tests/cuda_calls/fixture.hpp"
#include "tests/support/replicas.hpp"

using namespace echelon;
using namespace echelon::test;

namespace {

struct Counts {
  std::map<std::string, std::int64_t> calls;
  std::int64_t hidden = 0;
};

Counts count(ReplicaRun run, int steps) {
  run.steps = steps;
  ledger().begin({});
  (void)train_replicas(run);
  CHECK(complaints() == "");
  return {ledger().counts(), ledger().hidden_waits()};
}

// The calls of one step, rounded down if some come every second step.
Counts of_a_step(const ReplicaRun& run) {
  constexpr int kFew = 3, kMore = 4;
  Counts few = count(run, kFew), more = count(run, kFew + kMore);
  for (auto& [name, calls] : more.calls) calls = (calls - few.calls[name]) / kMore;
  more.hidden = (more.hidden - few.hidden) / kMore;
  return more;
}

void print(const char* name, const Counts& counts) {
  std::printf("a step of %s:", name);
  for (const auto& [call, times] : counts.calls)
    if (times > 0) std::printf(" %s %lld", call.c_str(), static_cast<long long>(times));
  std::printf("; hidden waits %lld\n", static_cast<long long>(counts.hidden));
}

ReplicaRun one_replica(const Graph& graph, DType activations) {
  return {.graph = graph,
          .shares = {2},
          .device = "cuda",
          .dtype = DType::f32,
          .activations = activations,
          .bucket_kb = 1000};
}

}  // namespace

TEST_CASE("a step takes no memory, makes no object, and waits for the device a known number of times",
          "[cuda_calls][counts]") {
  struct Row {
    const char* name;
    Graph graph;
  };
  for (const Row& row : {Row{"resnet20", small_zoo_model("resnet20")}, Row{"charlstm", small_zoo_model("charlstm")}})
    for (const DType activations : {DType::f32, DType::bf16}) {
      Counts step = of_a_step(one_replica(row.graph, activations));
      INFO(row.name << " " << name_of(activations));
      print(row.name, step);
      for (const char* call : {"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost", "cudaStreamCreateWithFlags",
                               "cudaGraphInstantiate", "cudnnCreateTensorDescriptor", "cudnnSetTensor4dDescriptor",
                               "cudnnGetConvolutionForwardAlgorithm_v7", "cublasCreate_v2", "cublasSetStream_v2"}) {
        INFO(call);
        CHECK(step.calls[call] == 0);
      }
      // For the upload before the last, whose place is used again, and for the losses.
      CHECK(step.calls["cudaEventSynchronize"] == 2);
      CHECK(step.calls["cudaStreamSynchronize"] == 0);
      CHECK(step.hidden == 0);  // nothing is copied through pageable memory
      // One upload of all three inputs, a copy of each to its place, and the losses.
      CHECK(step.calls["cudaMemcpyAsync"] == 5);
    }
}
