// SPDX-License-Identifier: Apache-2.0
// bf16 on the CPU, emulated, as a user runs it.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/processor.hpp"
#include "tests/run/compare.hpp"

namespace echelon {

using Catch::Contains;
using test::Sets;
using test::train_run;
using test::with;

namespace {

const Sets kHalves = {"device.dtype=bf16", "device.emulate_halves=true"};

}  // namespace

TEST_CASE("bf16 on a CPU without instructions for it is refused with what to write", "[run][halves]") {
  const test::Trial trial;
  CHECK_THAT(trial.echelon({"info"}).out, Contains(half_instructions_text()));
  // Any machine can behave as one without these instructions.
  const test::EchelonOptions small{.cwd = trial / "", .env = {{"ECHELON_MAX_ISA", "avx2"}}};
  const std::string none = "this processor, limited by ECHELON_MAX_ISA=avx2, has none of AVX512_BF16";
  CHECK_THAT(test::run_echelon({"info"}, small).out, Contains(none));
  const std::vector<std::string> halves = {"--set", "device.dtype=bf16"};
  for (std::vector<std::string> words :
       {std::vector<std::string>{"train", "trial.toml"}, {"bench", "step", "trial.toml", "--steps", "1"}}) {
    words.insert(words.end(), halves.begin(), halves.end());
    const test::Outcome refused = test::run_echelon(words, small);
    INFO(refused.out << refused.err);
    CHECK(refused.code == kExitEnvironment);
    CHECK_THAT(refused.err, Contains(none) && Contains("echelon info") && Contains("device.emulate_halves = true"));
  }
  // `check` may plan for another machine.
  const test::Outcome plan = test::run_echelon({"check", "trial.toml", "--set", "device.dtype=bf16"}, small);
  CHECK(plan.code == kExitOk);
  CHECK_THAT(plan.out + plan.err,
             Contains("no onednn device on this machine") && Contains("device.emulate_halves = true"));
}

TEST_CASE("training in bf16 reaches the loss of f32, on one rank and on two, and is used afterwards", "[run][halves]") {
  const test::Trial trial;
  const test::TrainedRun wide = train_run(trial, "wide", {{0}}, {});
  const test::TrainedRun half = train_run(trial, "half", {{0}}, kHalves);
  const test::TrainedRun both = train_run(trial, "both", {{2}}, kHalves);
  const double loss = wide.summary()["test_loss"];
  for (const test::TrainedRun* run : {&half, &both}) {
    CHECK(run->summary()["test_loss"].get<double>() == Approx(loss).margin(0.03));
    CHECK(run->summary()["test_loss"].get<double>() != loss);
    CHECK(run->summary()["test_accuracy"].get<double>() > 0.9);
  }
  for (const char* verb : {"eval", "predict"}) {
    std::vector<std::string> words = {verb, "results/half", "test"};
    if (words.front() == "predict") words.insert(words.end(), {"--out", "p.h5"});
    const test::Outcome used = trial.echelon(words);
    INFO(used.out << used.err);
    CHECK(used.code == kExitOk);
  }
}

TEST_CASE("a run in bf16 goes on from its checkpoint with the same bits, and one in f32 goes on in bf16",
          "[run][halves]") {
  const test::Trial trial;
  const test::TrainedRun whole = train_run(trial, "whole", {{0}}, kHalves);
  const test::TrainedRun stopped = train_run(trial, "stopped", {{0, {"train.steps=15"}}, {0}}, kHalves);
  test::check_equal(stopped, whole, {.part = "", .evaluation = true});
  train_run(trial, "source", {{0, {"train.steps=20"}}});
  const test::TrainedRun taken =
      train_run(trial, "taken", {{0, {"run.resume_from=results/source"}, "from step 20 of another run"}}, kHalves);
  CHECK(taken.summary()["test_loss"].get<double>() == Approx(whole.summary()["test_loss"].get<double>()).margin(0.03));
}

TEST_CASE("train.reproducible in bf16: one rank and two end with the same bits", "[run][halves]") {
  const test::Trial trial;
  const Sets sets = with(kHalves, {"train.reproducible=true", "exchange.algorithm=butterfly", "train.steps=20"});
  const test::TrainedRun one = train_run(trial, "one", {{0}}, sets), two = train_run(trial, "two", {{2}}, sets);
  test::check_equal(two, one, {.part = "weights/", .evaluation = true, .steps = 20});
}

TEST_CASE("in bf16: memory as predicted, paces, sweeps of steps", "[run][halves]") {
  const test::Trial trial;
  const test::Outcome plan = trial.check(kHalves);
  INFO(plan.out << plan.err);
  CHECK(plan.code == kExitOk);
  const Sets few = with(kHalves, {"train.steps=6", "train.epochs=0"});
  const test::Outcome paced = trial.train(2, with(few, {"device.pace_ms=5"}));
  INFO(paced.out << paced.err);
  CHECK(paced.code == kExitOk);
  std::vector<std::string> words = {"bench", "step", "trial.toml", "--steps", "2", "--ops"};
  for (const std::string& set : kHalves) words.insert(words.end(), {"--set", set});
  const test::Outcome bench = trial.echelon(words);
  INFO(bench.out << bench.err);
  CHECK(bench.code == kExitOk);
  CHECK_THAT(bench.out, Contains("reorder bf16") && Contains("reorder f32") && Contains("conv_forward bf16"));
}

}  // namespace echelon
