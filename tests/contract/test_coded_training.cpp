// SPDX-License-Identifier: Apache-2.0
// Small nets trained by replicas with coded gradients: all have the same weights and still learn; statistics are exact.
#include <catch2/catch.hpp>
#include <cmath>

#include "comm/codec/codec.hpp"
#include "comm/collective/algorithms.hpp"
#include "tests/support/one_model.hpp"
#include "tests/support/replicas.hpp"

namespace echelon {
namespace {

using namespace test;

ReplicaRun small_run(const std::string& codec) {
  return {.graph = small_cnn(),
          .shares = {8, 8, 8},
          .codec = codec,
          .dtype = DType::f32,
          .activations = DType::f32,
          .steps = 60,
          .bucket_kb = 4,
          .one_batch = true};
}

TEST_CASE("a small net learns with every codec, and replicas stay equal", "[codec]") {
  const ReplicaResult plain = train_replicas(small_run("none"));
  ReplicaRun short_run = small_run("none");
  short_run.steps = 1;
  const double before = train_replicas(short_run).loss;
  for (const std::string& codec : codec_names()) DYNAMIC_SECTION(codec) {
      const ReplicaResult coded = train_replicas(small_run(codec));
      check_one_model(coded);
      CHECK(plain.loss < 0.7 * before);
      CHECK(coded.loss < before - 0.6 * (before - plain.loss));
      if (codec_info(codec).lossy) CHECK(coded.weights != plain.weights);
    }
}

TEST_CASE("lossless: the weights of no codec, bit for bit, in double too", "[codec][equality]") {
  for (const std::string& algorithm : allreduce_names()) {
    if (algorithm == "mpi" || algorithm == "shared") continue;  // cannot be coded
    for (const DType dtype : {DType::f32, DType::f64}) DYNAMIC_SECTION(algorithm << " " << name_of(dtype)) {
        ReplicaRun run = small_run("none");
        run.algorithm = algorithm, run.dtype = run.activations = dtype, run.steps = 5;
        const ReplicaResult plain = train_replicas(run);
        run.codec = "lossless";
        const ReplicaResult coded = train_replicas(run);
        check_one_model(coded);
        CHECK(coded.weights == plain.weights);
        CHECK(coded.sent_bytes <= plain.sent_bytes);
      }
  }
}

TEST_CASE("before its first step a codec leaves gradients as they are", "[codec]") {
  ReplicaRun run = small_run("none");
  run.graph = small_batch_norm_net();
  run.steps = 6;
  const ReplicaResult plain = train_replicas(run);
  for (const std::string& codec : codec_names()) DYNAMIC_SECTION(codec) {
      run.codec = codec;
      run.codec_warmup = 6;
      const ReplicaResult warm = train_replicas(run);
      check_one_model(warm);
      CHECK(warm.weights == plain.weights);
      CHECK(warm.sent_bytes == plain.sent_bytes);
      CHECK(std::isnan(warm.formula_bytes));
      run.codec_warmup = 4;
      const ReplicaResult coded = train_replicas(run);
      check_one_model(coded);
      CHECK((coded.weights != plain.weights) == codec_info(codec).lossy);
      CHECK((coded.sent_bytes < plain.sent_bytes) == codec_info(codec).lossy);
    }
}

TEST_CASE("running statistics are exchanged as they are, whatever the codec", "[codec]") {
  ReplicaRun run = small_run("none");
  run.graph = small_batch_norm_net();
  run.steps = 1;  // a second step's statistics depend on the first's weights
  const std::vector<double> plain = train_replicas(run).weights;
  for (const std::string& codec : codec_names()) DYNAMIC_SECTION(codec) {
      run.codec = codec;
      for (const char* device : {"reference", "discrete"}) {
        run.device = device;
        const ReplicaResult coded = train_replicas(run);
        check_one_model(coded);
        for (const Parameter& parameter : run.graph.parameters().all())
          for (std::int64_t i = parameter.begin; i < parameter.end(); ++i)
            if (parameter.kind == ParameterKind::statistic)
              CHECK(coded.weights[static_cast<std::size_t>(i)] ==
                    Approx(plain[static_cast<std::size_t>(i)]).epsilon(1e-6));
      }
    }
}

TEST_CASE("a device that encodes by itself: the bits of the host's codecs", "[codec]") {
  for (const std::string& codec : codec_names())
    for (const Overlap overlap : {Overlap::none, Overlap::layers})
      for (const std::size_t ranks : {2, 3, 5})
        DYNAMIC_SECTION(codec << " " << ranks << " " << static_cast<int>(overlap)) {
          ReplicaRun run = small_run(codec);
          run.graph = small_batch_norm_net();
          run.shares.assign(ranks, 4);
          run.steps = 12;
          run.bucket_kb = 0.5;
          run.overlap = overlap;
          if (overlap == Overlap::none) run.resume_at = 7;
          const ReplicaResult host = train_replicas(run);
          run.device = "discrete";
          const ReplicaResult device = train_replicas(run);
          check_one_model(device);
          CHECK(device.weights == host.weights);
          CHECK(device.sent_bytes == host.sent_bytes);
        }
}

TEST_CASE("a coded run goes on from what a checkpoint holds with the same bits", "[codec]") {
  for (const std::string& codec : codec_names()) DYNAMIC_SECTION(codec) {
      ReplicaRun run = small_run(codec);
      run.graph = small_batch_norm_net();
      run.steps = 9;
      for (const auto& [device, feedback] :
           {std::pair("reference", true), std::pair("discrete", true), std::pair("discrete", false)}) {
        run.device = device, run.resume_at = -1, run.error_feedback = feedback;
        const ReplicaResult whole = train_replicas(run);
        run.resume_at = 5;
        const ReplicaResult resumed = train_replicas(run);
        check_one_model(resumed);
        CHECK((resumed.weights == whole.weights));
      }
    }
}

// Steps of rate 0 repeat the same gradients, so the errors of all steps are alike unless they accumulate.
TEST_CASE("without error feedback the errors of a step do not depend on the steps before", "[codec][feedback]") {
  for (const std::string& codec : codec_names())
    for (const char* strategy : {"synchronous", "server"})
      for (const char* device : {"reference", "discrete"}) {
        if (!codec_info(codec).lossy) continue;
        DYNAMIC_SECTION(codec << " " << strategy << " " << device) {
          ReplicaRun run = small_run(codec);
          run.strategy = strategy, run.device = device, run.learning_rate = 0, run.tau = 0.05;
          const auto norm_after = [&](int steps, bool feedback) {
            run.steps = steps, run.error_feedback = feedback;
            return train_replicas(run).residual_norm;
          };
          const double early = norm_after(3, false), drawn = codec == "int8" ? 0.1 : 0;
          CHECK(early > 0);
          CHECK(std::abs(norm_after(9, false) - early) <= drawn * early);
          if (codec == "topk" || codec == "onebit" || codec == "threshold") CHECK(norm_after(9, true) > 1.2 * early);
        }
      }
}

TEST_CASE("what no message holds reaches the weights by error feedback alone", "[codec][feedback]") {
  for (const char* strategy : {"synchronous", "averaging"})
    for (const char* device : {"reference", "discrete"}) DYNAMIC_SECTION(strategy << " " << device) {
        ReplicaRun run = small_run("threshold");
        run.strategy = strategy, run.device = device, run.averaging.period = 1;
        run.steps = 0, run.weight_decay = 0;
        const std::vector<double> start = train_replicas(run).weights;
        run.steps = 40, run.tau = 1;  // larger than any value of a step
        for (const bool feedback : {false, true}) {
          run.error_feedback = feedback;
          CHECK((train_replicas(run).weights == start) == !feedback);  // extra parentheses: not printed on failure
        }
      }
}

TEST_CASE("coded bytes on the wire are those of the formula", "[codec]") {
  for (const std::string& codec : codec_names()) DYNAMIC_SECTION(codec) {
      ReplicaRun run = small_run(codec);
      run.graph = small_batch_norm_net();
      run.steps = 3;
      const ReplicaResult result = train_replicas(run);
      if (std::isfinite(result.formula_bytes)) CHECK(result.sent_bytes == 3 * result.formula_bytes);
    }
}

}  // namespace
}  // namespace echelon
