// SPDX-License-Identifier: Apache-2.0
// Replicas around parameter servers that code gradients and weights: all have the same bits, still learn, and resume to
// the same bits; statistics are exact.
#include <catch2/catch.hpp>
#include <cmath>

#include "comm/codec/codec.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/random.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

ReplicaRun coded_run(const std::string& codec, int k, int servers, int steps) {
  ReplicaRun run{.graph = small_cnn(),
                 .shares = std::vector<std::int64_t>(static_cast<std::size_t>(k), 24 / k),
                 .strategy = "server",
                 .servers = servers,
                 .codec = codec,
                 .dtype = DType::f32,
                 .activations = DType::f32,
                 .steps = steps,
                 .bucket_kb = 4,
                 .one_batch = true};
  return run;
}

std::vector<std::string> lossy_codecs() {
  std::vector<std::string> names = codec_names();
  std::erase(names, "lossless");
  return names;
}

// Checks that 160 steps on one batch, coded from the first on, decrease the loss well below that of an uncoded step.
void check_learns(ReplicaRun run, const std::string& codec) {
  run.learning_rate = 0.02;
  run.codec = "none", run.steps = 1;
  const double before = train_replicas(run).loss;
  CAPTURE(before);
  run.codec = codec, run.steps = 160;
  const ReplicaResult coded = train_replicas(run);
  check_one_model(coded);
  CHECK(coded.loss < 0.3 * before);
  if (std::isfinite(coded.formula_bytes)) CHECK(coded.sent_bytes == 160 * coded.formula_bytes);
}

TEST_CASE("servers, lossless: the weights of no codec, bit for bit, in double too", "[codec][equality]") {
  for (int k = 1; k <= 4; ++k)
    for (const int servers : {0, 1, k})
      for (const DType dtype : {DType::f32, DType::f64})
        DYNAMIC_SECTION("k=" << k << " servers=" << servers << " " << name_of(dtype)) {
          ReplicaRun run = coded_run("none", k, servers, 5);
          run.dtype = run.activations = dtype;
          const ReplicaResult plain = train_replicas(run);
          run.codec = "lossless";
          const ReplicaResult coded = train_replicas(run);
          check_one_model(coded);
          CHECK(coded.weights == plain.weights);
        }
}

// Pulled weights come late too, so the learning rate must not let momentum outrun them.
TEST_CASE("servers: a small net learns with every codec both ways, and replicas stay equal", "[codec][sampled]") {
  for (const std::string& codec : lossy_codecs())
    for (const int k : sampled<int>({2, 3, 4}, 1, codec)) DYNAMIC_SECTION(codec << " k=" << k) {
        check_learns(coded_run(codec, k, 0, 160), codec);
      }
}

TEST_CASE("servers: a coded run goes on from what a checkpoint holds with the same bits", "[codec]") {
  for (const std::string& codec : lossy_codecs())
    for (int k = 1; k <= 4; ++k)
      for (const int servers : {0, 1}) DYNAMIC_SECTION(codec << " k=" << k << " servers=" << servers) {
          ReplicaRun run = coded_run(codec, k, servers, 9);
          run.graph = small_batch_norm_net();
          const ReplicaResult whole = train_replicas(run);
          run.resume_at = 5;
          const ReplicaResult resumed = train_replicas(run);
          check_one_model(resumed);
          CHECK(resumed.weights == whole.weights);
        }
}

TEST_CASE("servers: a codec that starts late: exact until then, resumed from before and behind", "[codec][sampled]") {
  for (const std::string& codec : lossy_codecs())
    for (const int k : sampled<int>({1, 2, 3}, 1, codec)) DYNAMIC_SECTION(codec << " k=" << k) {
        ReplicaRun run = coded_run("none", k, 0, 6);
        const ReplicaResult plain = train_replicas(run);
        run.codec = codec, run.codec_warmup = 6;
        CHECK(train_replicas(run).weights == plain.weights);
        run.codec_warmup = 4, run.steps = 9;
        const ReplicaResult whole = train_replicas(run);
        check_one_model(whole);
        for (const int at : {2, 4, 6}) {
          run.resume_at = at;
          CHECK(train_replicas(run).weights == whole.weights);
        }
      }
}

TEST_CASE("servers: running statistics are as without a codec, also on a device of its own memory", "[codec]") {
  ReplicaRun run = coded_run("none", 3, 2, 1);  // a second step's statistics depend on the first's weights
  run.graph = small_batch_norm_net();
  const std::vector<double> plain = train_replicas(run).weights;
  for (const std::string& codec : codec_names()) DYNAMIC_SECTION(codec) {
      run.codec = codec;
      run.device = "reference";
      const ReplicaResult near = train_replicas(run);
      run.device = "discrete";
      const ReplicaResult far = train_replicas(run);
      check_one_model(near);
      CHECK(far.weights == near.weights);
      for (const Parameter& parameter : run.graph.parameters().all())
        for (std::int64_t i = parameter.begin; i < parameter.end(); ++i)
          if (parameter.kind == ParameterKind::statistic)
            CHECK(near.weights[static_cast<std::size_t>(i)] == plain[static_cast<std::size_t>(i)]);
    }
}

TEST_CASE("servers: coded bytes on the wire are those of the formula", "[codec]") {
  for (const std::string& codec : codec_names())
    for (int k = 1; k <= 4; ++k) DYNAMIC_SECTION(codec << " k=" << k) {
        ReplicaRun run = coded_run(codec, k, k > 2 ? 2 : 0, 3);
        run.graph = small_batch_norm_net();
        const ReplicaResult result = train_replicas(run);
        const bool exact = std::isfinite(result.formula_bytes);
        CHECK(exact == (k == 1 || (codec != "topk" && codec != "threshold" && codec != "lossless")));
        if (exact) CHECK(result.sent_bytes == 3 * result.formula_bytes);
        if (k > 1 && codec_info(codec).lossy) {
          run.codec = "none";
          CHECK(result.sent_bytes < 0.8 * train_replicas(run).sent_bytes);
        }
      }
}

TEST_CASE("servers on ranks of their own: coded, equal, learning, resumed to the same bits", "[codec][sampled]") {
  for (const std::string& codec : lossy_codecs())
    for (const int k : sampled<int>({1, 2, 3}, 1, codec)) DYNAMIC_SECTION(codec << " workers=" << k) {
        ReplicaRun run = coded_run(codec, k, 0, 9);
        run.server_ranks = k == 2 ? 2 : 1;
        check_learns(run, codec);
        run.learning_rate = 0.02;
        run.graph = small_batch_norm_net();
        const ReplicaResult whole = train_replicas(run);
        run.resume_at = 5;
        CHECK(train_replicas(run).weights == whole.weights);
      }
}

TEST_CASE("servers: coded, with norms over all their parts: replicas stay equal, and go on with the same bits",
          "[codec][sampled]") {
  for (const std::string& codec : lossy_codecs())
    for (const std::string& rule : sampled<std::string>({"sgd", "lars", "lamb"}, 1, codec))
      DYNAMIC_SECTION(codec << " " << rule) {
        ReplicaRun run = coded_run(codec, 3, 0, 9);
        run.graph = small_batch_norm_net();
        run.rule = rule, run.clip_norm = rule == "lamb" ? 0 : 0.1, run.learning_rate = 0.02;
        const ReplicaResult whole = train_replicas(run);
        check_one_model(whole);
        run.resume_at = 5;
        CHECK(train_replicas(run).weights == whole.weights);
      }
}

TEST_CASE("servers: with residuals, weights that are sent coded stay close to exact ones", "[codec]") {
  // int8 disturbs gradients little, one server sends all weights, and training settles within these steps.
  ReplicaRun run = coded_run("int8", 2, 1, 40);
  run.learning_rate = 0.02;
  ReplicaRun plain = run;
  plain.codec = "none";
  const ReplicaResult coded = train_replicas(run), exact = train_replicas(plain);
  CHECK(tensor_distance(run.graph.parameters(), coded.weights, exact.weights) < 0.05);
}

}  // namespace
}  // namespace echelon
