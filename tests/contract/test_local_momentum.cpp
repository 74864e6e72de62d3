// SPDX-License-Identifier: Apache-2.0
// optimizer.momentum_before_coding: without loss of a codec it is the momentum of the sums, because both are linear.
#include <catch2/catch.hpp>

#include "tests/support/one_model.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

ReplicaRun small_run(const std::string& codec, std::vector<std::int64_t> shares) {
  return {.graph = small_batch_norm_net(),
          .shares = std::move(shares),
          .codec = codec,
          .dtype = DType::f32,
          .activations = DType::f32,
          .steps = 12,
          .bucket_kb = 0.5,
          .weight_decay = 0.01};
}

// Rounding is all that differs: 2^-53 of each of the few sums of a step, in weights that follow them for 12 steps.
TEST_CASE("momentum before a codec that loses nothing: the weights of momentum of the sums", "[codec][equality]") {
  for (const std::vector<std::int64_t>& shares : std::vector<std::vector<std::int64_t>>{{8}, {8, 8}, {4, 12, 8}})
    for (const bool nesterov : {false, true})
      for (const Overlap overlap : {Overlap::none, Overlap::layers})
        for (const char* device : {"reference", "discrete"}) {
          CAPTURE(shares, nesterov, static_cast<int>(overlap), device);
          ReplicaRun run = small_run("lossless", shares);
          run.dtype = run.activations = DType::f64;
          run.nesterov = nesterov, run.overlap = overlap, run.device = device;
          const ReplicaResult of_sums = train_replicas(run);
          run.momentum_before_coding = true;
          const ReplicaResult local = train_replicas(run);
          check_one_model(local);
          CHECK(tensor_distance(run.graph.parameters(), local.weights, of_sums.weights) < 1e-12);
          CHECK((shares.size() == 1 || local.weights != of_sums.weights));
        }
}

TEST_CASE("momentum before coding trains with every codec, with equal bits on host and device", "[codec]") {
  for (const std::string codec : {"fp16", "int8", "onebit", "topk"}) {
    CAPTURE(codec);
    ReplicaRun run = small_run(codec, {8, 8, 8});
    run.one_batch = true, run.steps = 1;
    const double before = train_replicas(run).loss;
    run.steps = 60;
    const ReplicaResult of_sums = train_replicas(run);
    run.momentum_before_coding = true;
    const ReplicaResult local = train_replicas(run);
    check_one_model(local);
    CHECK(local.weights != of_sums.weights);
    CHECK(local.loss < 0.5 * before);
    run.device = "discrete";
    CHECK((train_replicas(run).weights == local.weights));
  }
}

TEST_CASE("the momentum of each replica is in checkpoints", "[codec]") {
  for (const std::string codec : {"lossless", "topk", "onebit"})
    for (const char* device : {"reference", "discrete"}) {
      CAPTURE(codec, device);
      ReplicaRun run = small_run(codec, {8, 8, 8});
      run.device = device, run.momentum_before_coding = true;
      run.code_sums = codec == "onebit";
      const ReplicaResult whole = train_replicas(run);
      run.resume_at = 5;
      const ReplicaResult resumed = train_replicas(run);
      check_one_model(resumed);
      CHECK((resumed.weights == whole.weights));
    }
}

}  // namespace
}  // namespace echelon
