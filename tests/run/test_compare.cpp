// SPDX-License-Identifier: Apache-2.0
// `echelon compare` on real runs: equal ones, slower ones, ones that send more, and ones that it must not compare.
#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {
namespace {

using nlohmann::json;

void train_side(const Trial& trial, const std::string& side, int attempts, const Sets& sets) {
  for (int i = 0; i < attempts; ++i) {
    const Outcome run = trial.train(2, with({"run.results=" + side, "run.restart=never"}, sets));
    INFO(run.err);
    REQUIRE(run.code == kExitOk);
  }
}

json figure_of(const json& comparison, const std::string& name) {
  for (const json& figure : comparison["runs"][0]["figures"])
    if (figure["figure"] == name) return figure;
  return {};
}

}  // namespace

TEST_CASE("equal runs pass; steps that take twice as long fail with 8, in the table, JSON and JUnit",
          "[compare][slow]") {
  const Trial trial;
  const Sets paced = {"device.pace_ms=15", "train.epochs=4"};
  train_side(trial, "base", 3, paced);
  train_side(trial, "same", 3, with(paced, {"seed=8"}));
  train_side(trial, "slow", 3, with(paced, {"device.pace_ms=30"}));  // far more than the noise of a busy machine
  // Seeds differ, so the accuracy on 201 samples differs too.
  const Outcome same = trial.echelon({"compare", "base", "same", "--tolerance", "0.3", "--tolerance", "accuracy=0.2"});
  INFO(same.out << same.err);
  CHECK(same.code == kExitOk);
  CHECK_THAT(same.out, Catch::Contains("no regression: 0 figures worse") && Catch::Contains("wire_bytes_per_step"));

  const Outcome refused = trial.echelon({"compare", "base", "slow"});
  CHECK(refused.code == kExitConfig);
  CHECK_THAT(refused.err, Catch::Contains("device.pace_ms"));
  const std::vector<std::string> words = {"compare", "base",           "slow",    "--tolerance", "0.1",
                                          "--allow", "device.pace_ms", "--junit", "slow.xml"};
  const Outcome slow = trial.echelon(words);
  INFO(slow.out << slow.err);
  CHECK(slow.code == kExitUnmet);
  CHECK_THAT(slow.out, Catch::Contains("worse: ") && Catch::Contains("% lower") && Catch::Contains("REGRESSION"));
  CHECK_THAT(read_file_whole(trial / "slow.xml"), Catch::Contains("<failure type=\"regression\""));
  const Outcome other_way = trial.echelon({"compare", "slow", "base", "--allow", "device", "--json"});
  CHECK(other_way.code == kExitOk);
  CHECK(figure_of(json::parse(other_way.out), "samples_per_s")["verdict"] == "better");
}

TEST_CASE("an exchange that sends more messages fails with 8, runs on other numbers of ranks are refused",
          "[compare]") {
  const Trial trial;
  const std::string steps = "train.steps=6";
  train_side(trial, "ring", 1, {steps});
  train_side(trial, "segments", 1, {steps, "exchange.segment_kb=8"});
  const std::vector<std::string> counts = {"--only", "counts", "--json"};
  Outcome outcome = trial.echelon(with({"compare", "ring", "segments", "--allow", "exchange.segment_kb"}, counts));
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitUnmet);
  const json compared = json::parse(outcome.out);
  CHECK(figure_of(compared, "messages_per_step")["verdict"] == "worse");
  CHECK(figure_of(compared, "wire_bytes_per_step")["verdict"] == "none");
  CHECK(trial.echelon(with({"compare", "ring", "ring"}, counts)).code == kExitOk);

  REQUIRE(trial.train(1, {"run.results=one", steps}).code == kExitOk);
  outcome = trial.echelon({"compare", "ring", "one"});
  CHECK(outcome.code == kExitConfig);
  CHECK_THAT(outcome.err, Catch::Contains("ranks") && Catch::Contains("mesh") && Catch::Contains("--allow KEY"));
  // Six steps are too few for a test of throughput.
  outcome = trial.echelon({"compare", "ring", "ring"});
  CHECK(outcome.code == kExitData);
  CHECK_THAT(outcome.err, Catch::Contains("at least 20"));
}

TEST_CASE("compare refuses options that make no sense", "[compare]") {
  const auto refused = [](const std::vector<std::string>& words, const char* why) {
    const Outcome run = run_echelon(words);
    INFO(run.err);
    CHECK(run.code == kExitConfig);
    CHECK_THAT(run.err, Catch::Contains(why));
  };
  refused({"compare", "nowhere", "nowhere"}, "no such folder");
  refused({"compare", "a", "b", "--tolerance", "memry=0.1"}, "did you mean 'memory'");
  refused({"compare", "a", "b", "--tolerance", "5 %"}, "0.03");
  refused({"compare", "a", "b", "--only", "speed"}, "throughput");
  refused({"compare", "a", "b", "--significance", "0.7"}, "probability");
}

TEST_CASE("weights of runs are compared by tensor: replicas beside one, other seeds, files, other models",
          "[compare]") {
  const Trial trial;
  const Sets exact = {"device.kind=reference", "device.dtype=f64", "train.steps=6", "checkpoint.every_steps=6"};
  const auto train = [&](int ranks, const std::string& name, const Sets& sets) {
    const Outcome run = trial.train(ranks, with(exact, with({"run.results=" + name}, sets)));
    INFO(run.err);
    REQUIRE(run.code == kExitOk);
  };
  train(1, "one", {});
  train(2, "two", {});
  train(1, "other", {"seed=9"});
  const auto compare = [&](const std::string& base, const std::string& fresh, const Sets& options) {
    return trial.echelon(with({"compare", base + "/trial", fresh + "/trial", "--weights"}, options));
  };
  const Outcome same = compare("one", "two", {"--tolerance", "1e-8"});
  INFO(same.out << same.err);
  CHECK(same.code == kExitOk);
  CHECK_THAT(same.out, Catch::Contains("max |new - base|") && Catch::Contains("largest difference: "));
  CHECK_THAT(compare("one", "one", {}).out, Catch::Contains("all values are equal"));
  const Outcome apart = compare("one", "other", {"--tolerance", "1e-3", "--json"});
  CHECK(apart.code == kExitUnmet);
  const json distances = json::parse(apart.out);
  CHECK(distances["relative"] > 0.1);
  CHECK(distances["tensors"].size() > 3);
  CHECK(compare("one", "other", {}).code == kExitOk);

  REQUIRE(trial.echelon({"export", "two/trial", "--out", "two.safetensors"}).code == kExitOk);
  const Outcome file = trial.echelon({"compare", "one/trial", "two.safetensors", "--weights", "--tolerance", "1e-6"});
  INFO(file.out << file.err);
  CHECK(file.code == kExitOk);  // the runs are in f32

  train(1, "larger", {"model.zoo=cnn_32_64"});
  const Outcome refused = compare("one", "larger", {});
  CHECK(refused.code == kExitConfig);
  CHECK_THAT(refused.err, Catch::Contains("they belong to different models"));
  CHECK(compare("one", "two", {"--only", "loss"}).code == kExitConfig);
  CHECK(compare("one", "two", {"--tolerance", "memory=1"}).code == kExitConfig);
}

}  // namespace echelon::test
