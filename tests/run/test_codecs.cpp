// SPDX-License-Identifier: Apache-2.0
// Runs with coded gradients: they resume to the same bits, resume on other numbers of ranks, and record their traffic.
#include <catch2/catch.hpp>

#include "tests/run/compare.hpp"

namespace echelon {
namespace {

// Trains 51 steps in one run, and in two.
void check_resumed(int ranks, const test::Sets& sets) {
  const test::Trial trial;
  const test::TrainedRun whole = test::train_run(trial, "whole", {{ranks}}, sets);
  check_equal(test::train_run(trial, "cut", {{ranks, {"train.steps=23"}}, {ranks, {}, "from step 23:"}}, sets), whole,
              {.part = ""});
}

// Trains on 2, 3 and 1 ranks, one after another.
test::TrainedRun train_on_other_ranks(const test::Trial& trial, const test::Sets& sets) {
  return test::train_run(
      trial, "trial",
      {{2, {"train.steps=10"}}, {3, {"train.steps=20"}, "resuming on 3 replicas from a run of 2 replicas"}, {1}}, sets);
}

TEST_CASE("a run with a codec resumes to the same bits, residuals and thresholds included", "[run][slow]") {
  const auto codec =
      GENERATE(test::Sets{"exchange.codec=bf16"}, test::Sets{"exchange.codec=int8"},
               test::Sets{"exchange.codec=threshold"}, test::Sets{"exchange.codec=onebit", "exchange.code_sums=true"},
               test::Sets{"exchange.codec=topk", "optimizer.momentum_before_coding=true"});
  check_resumed(2, test::with(codec, {"exchange.bucket_mb=0.01", "optimizer.momentum=0.9"}));
}

TEST_CASE("servers: a coded run resumes to the same bits", "[run][slow]") {
  const std::string codec = GENERATE(as<std::string>(), "fp16", "onebit", "topk", "threshold");
  check_resumed(2, {"exchange.strategy=server", "exchange.codec=" + codec, "exchange.bucket_mb=0.01"});
}

TEST_CASE("servers: a coded run goes on with another number of ranks and still learns", "[run]") {
  const std::string codec = GENERATE(as<std::string>(), "int8", "threshold");
  const test::Trial trial;
  const test::TrainedRun run =
      train_on_other_ranks(trial, {"exchange.strategy=server", "exchange.codec=" + codec, "evaluate.every_epochs=0"});
  CHECK(run.summary()["test_accuracy"].get<double>() > 0.85);
}

TEST_CASE("asynchronous servers: a coded run goes on with another number of ranks and still learns", "[run]") {
  const auto codec =
      GENERATE(test::Sets{"exchange.codec=int8"},
               test::Sets{"exchange.codec=topk", "exchange.density=0.1", "exchange.asynchronous.states=server"});
  const test::Trial trial;
  const test::TrainedRun run = train_on_other_ranks(
      trial, test::with({"exchange.strategy=asynchronous", "evaluate.every_epochs=0", "train.epochs=12"}, codec));
  CHECK(run.summary()["test_accuracy"].get<double>() > 0.85);
}

TEST_CASE("a run with a codec goes on with another number of ranks and still learns", "[run][slow]") {
  const auto codec = GENERATE(test::Sets{"exchange.codec=onebit"}, test::Sets{"exchange.codec=topk"},
                              test::Sets{"exchange.codec=onebit", "exchange.code_sums=true", "optimizer.momentum=0.9",
                                         "optimizer.momentum_before_coding=true"});
  const test::Trial trial;
  CHECK(train_on_other_ranks(trial, codec).summary()["test_accuracy"].get<double>() > 0.85);
}

TEST_CASE("records say what a codec did", "[run]") {
  const test::Trial trial;
  const test::Outcome run = trial.train(2, {"exchange.codec=threshold", "exchange.density=0.02", "train.steps=12",
                                            "evaluate.every_epochs=0", "run.measure_peak=true"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(trial.summary()["peak_flops"] > 0);
  CHECK(trial.summary()["codec_s"] > 0);
  CHECK_THAT(run.out, Catch::Contains("all-gather of messages coded as threshold") && Catch::Contains("threshold: ") &&
                          Catch::Contains("times fewer bytes"));
  int rows = 0;
  for (const auto& row : trial.metrics()) {
    if (row["type"] != "step" || !row.contains("codec")) continue;  // nothing has arrived when the first step ends
    const auto& codec = row["codec"];
    ++rows;
    CHECK(codec["bytes_after"].get<double>() < codec["bytes_before"].get<double>() / 12);
    CHECK(codec["tau"].get<double>() > 0);
    CHECK(codec["seconds"].get<double>() > 0);
    CHECK(codec["density"].get<double>() > 0);
    CHECK(codec["residual_norm"].get<double>() > 0);
  }
  CHECK(rows >= 10);
  const auto summary = trial.summary();
  CHECK(summary["codec"] == "threshold");
  CHECK(summary["formula_bytes_per_step"].is_null());
  // Bytes that all ranks sent; statistics travel uncoded beside the codec.
  const double wire = summary["wire_bytes_per_step"].get<double>() * 12;
  const double coded = 2 * summary["coded"]["bytes_after"].get<double>();
  CHECK(wire >= coded);
  CHECK(wire < 2 * coded);
}

}  // namespace
}  // namespace echelon
