// SPDX-License-Identifier: Apache-2.0
// Asynchronous servers whose messages are coded both ways: they have one model at meetings and bytes by formula, learn
// by any rules, and resume to the same bits where the order is known. tests/unit/exchange/test_async_codec.cpp compares
// the arithmetic with a plain loop, tests/run/test_replay.cpp repeats runs.
#include <catch2/catch.hpp>
#include <cmath>

#include "comm/codec/codec.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/random.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

ReplicaRun coded_run(const std::string& codec, int workers, int server_ranks, int steps) {
  return {.graph = small_batch_norm_net(),
          .shares = std::vector<std::int64_t>(static_cast<std::size_t>(workers), 24 / workers),
          .strategy = "asynchronous",
          .server_ranks = server_ranks,
          .codec = codec,
          .dtype = DType::f32,
          .activations = DType::f32,
          .steps = steps,
          .bucket_kb = 4,
          .one_batch = true,
          .learning_rate = 0.02};
}

bool exact_bytes(const std::string& codec) { return codec != "topk" && codec != "threshold" && codec != "lossless"; }

TEST_CASE("asynchronous servers, lossless: the weights of no codec, bit for bit, in double too",
          "[codec][asynchronous]") {
  for (const int servers : {1, 2})
    for (const DType dtype : {DType::f32, DType::f64})
      for (const AsyncStates states : {AsyncStates::worker, AsyncStates::server}) {
        CAPTURE(servers, name_of(dtype));
        ReplicaRun run = coded_run("none", 1, servers, 6);  // one worker gives one order of arrivals
        run.dtype = run.activations = dtype, run.asynchronous.states = states;
        const ReplicaResult plain = train_replicas(run);
        run.codec = "lossless";
        CHECK(train_replicas(run).weights == plain.weights);
      }
}

TEST_CASE("asynchronous servers: a net learns with every codec both ways, by any rules", "[codec][asynchronous]") {
  std::vector<AsynchronousKeys> rules(5);
  rules[1] = {.soft = 2, .drop_above = 6};
  rules[2] = {.staleness_scale = 1, .delay_compensation = 0.04};
  rules[3].states = AsyncStates::server;
  rules[4] = {.soft = 2, .states = AsyncStates::server, .delay_compensation = 0.04, .compensation_decay = 0.9};
  std::size_t i = 0;
  for (const std::string& codec : codec_names())
    for (const int workers : {2, 3}) {
      const AsynchronousKeys& keys = rules[i++ % rules.size()];
      CAPTURE(codec, workers, i);
      ReplicaRun run = coded_run("none", workers, static_cast<int>(i % 3), 1);
      run.strategy = i % 2 == 0 ? "stale_synchronous" : "asynchronous";
      const double before = train_replicas(run).all_losses;
      run.codec = codec, run.asynchronous = keys, run.steps = 200;
      const ReplicaResult result = train_replicas(run);
      check_one_model(result);
      CHECK(result.all_losses < 0.5 * before);
      CHECK(std::isfinite(result.formula_bytes) == exact_bytes(codec));
      if (exact_bytes(codec)) CHECK(result.sent_bytes == Approx(200 * result.formula_bytes).epsilon(1e-12));
    }
}

// With one worker beside servers the order of arrivals is known. Both runs have a meeting after the first step.
TEST_CASE("asynchronous servers: a coded run goes on from what a checkpoint holds with the same bits",
          "[codec][asynchronous]") {
  for (const std::string& codec : codec_names())
    for (const AsyncStates states : {AsyncStates::worker, AsyncStates::server})
      for (const std::string device : {"reference", "discrete"}) {
        CAPTURE(codec, device);
        ReplicaRun run = coded_run(codec, 1, 2, 9);
        run.asynchronous.states = states, run.device = device;
        const ReplicaResult whole = train_replicas(run);
        run.resume_at = 1;
        CHECK((train_replicas(run).weights == whole.weights));  // extra parentheses: not printed on failure
      }
}

TEST_CASE("asynchronous servers: a codec that starts late is exact until then", "[codec][asynchronous]") {
  for (const std::string& codec : codec_names()) {
    CAPTURE(codec);
    ReplicaRun run = coded_run("none", 1, 1, 6);
    const ReplicaResult plain = train_replicas(run);
    run.codec = codec, run.codec_warmup = 6;
    CHECK(train_replicas(run).weights == plain.weights);
    run.codec_warmup = 4;
    CHECK((train_replicas(run).weights == plain.weights) == !codec_info(codec).lossy);
  }
}

TEST_CASE("asynchronous servers: running statistics are as without a codec", "[codec][asynchronous]") {
  ReplicaRun run = coded_run("none", 1, 2, 1);  // a second step's statistics depend on the first's weights
  const std::vector<double> plain = train_replicas(run).weights;
  for (const std::string& codec : codec_names()) {
    CAPTURE(codec);
    run.codec = codec;
    const std::vector<double> weights = train_replicas(run).weights;
    for (const Parameter& parameter : run.graph.parameters().all())
      for (std::int64_t i = parameter.begin; i < parameter.end(); ++i)
        if (parameter.kind == ParameterKind::statistic)
          CHECK(weights[static_cast<std::size_t>(i)] == plain[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("asynchronous servers, coded: clipped, adaptive to whole parameters, in mixed precision",
          "[codec][asynchronous]") {
  for (const std::string& codec : codec_names())
    for (const char* rule : {"lars", "lamb"}) {
      CAPTURE(codec, rule);
      ReplicaRun run = coded_run(codec, 3, 0, 6);
      run.rule = rule, run.clip_norm = run.rule == "lamb" ? 0 : 0.1;
      run.device = "random_layout", run.activations = DType::bf16;
      check_one_model(train_replicas(run));
    }
}

}  // namespace
}  // namespace echelon
