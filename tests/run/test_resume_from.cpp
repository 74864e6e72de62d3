// SPDX-License-Identifier: Apache-2.0
// Runs that begin from a checkpoint of another run (run.resume_from).
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/compare.hpp"

namespace echelon::test {
namespace {

namespace fs = std::filesystem;

std::vector<int> steps_of(const Trial& trial, const std::string& name) {
  std::vector<int> steps;
  for (const auto& row : trial.metrics(name))
    if (row["type"] == "step") steps.push_back(row["step"].get<int>());
  return steps;
}

// Trains 20 steps of the run "source".
TrainedRun train_source(const Trial& trial, int ranks, const Sets& sets = {}) {
  return train_run(trial, "source", {{ranks, with({"train.steps=20"}, sets)}});
}

}  // namespace

TEST_CASE("another algorithm takes a run up where it was, to the same bits, and then goes on by itself",
          "[run][resume_from]") {
  const Trial trial;
  const Sets other = {"name=taken", "exchange.algorithm=naive", "run.resume_from=results/source"};
  const TrainedRun straight = train_run(trial, "straight", {{2}});
  train_source(trial, 2);
  const TrainedRun begun =
      train_run(trial, "taken", {{2, {"train.steps=30"}, "from step 20 of another run: results/source/run-"}}, other);
  CHECK_THAT(begun.out, !Catch::Contains("left out") && !Catch::Contains("hint"));
  const Outcome foreseen = trial.check(other);
  CHECK(foreseen.code == kExitOk);
  CHECK_THAT(foreseen.out, Catch::Contains("start       from step 30: results/taken/run-"));
  fs::remove_all(trial / "results/source");  // the run that it named is needed no more
  check_equal(train_run(trial, "taken", {{2, {}, "from step 30: results/taken/run-"}}, other), straight, {.part = ""});
  std::vector<int> steps;
  for (int step = 21; step <= 51; ++step) steps.push_back(step);
  CHECK(steps_of(trial, "taken") == steps);
  CHECK_THAT(trial.check(other).out, Catch::Contains("finished already, at step 51"));
}

TEST_CASE("a pipeline, and parameter servers, take up a run that was not split", "[run][resume_from][slow]") {
  const Trial trial;
  const Sets exact = {"device.kind=reference", "device.dtype=f64"};  // another order of sums differs by 1e-16
  const Sets end = with(exact, {"train.steps=26"});
  const TrainedRun straight = train_run(trial, "straight", {{0}}, end);
  train_source(trial, 0, exact);
  const auto [ranks, sets] =
      GENERATE(table<int, Sets>({{2, {"parallel.pipeline=2", "batch.accumulation=4"}},
                                 {3, {"exchange.strategy=server", "exchange.server.ranks=1", "batch.shares=[1, 2]"}}}));
  const std::string from = trial.run("source") + "/01";  // the folder of an attempt
  const TrainedRun taken = train_run(trial, "taken", {{ranks, sets, "from step 20 of another run: "}},
                                     with(end, {"run.resume_from=" + from}));
  CHECK_THAT(taken.out, !Catch::Contains("left out"));
  CHECK(steps_of(trial, "taken").front() == 21);
  check_equal(taken, straight, {.within = 1e-8});
}

TEST_CASE("residuals go along where strategy and codec are the same, and are left out aloud where not",
          "[run][resume_from][slow]") {
  const Trial trial;
  const Sets coded = {"exchange.codec=topk", "exchange.density=0.05"};
  train_source(trial, 2, coded);
  const Sets from = {"run.resume_from=results/source"};
  SECTION("the same codec") {
    const TrainedRun straight = train_run(trial, "straight", {{2}}, coded);
    const TrainedRun taken = train_run(trial, "taken", {{2, {"exchange.verify_every_steps=7"}}}, with(from, coded));
    CHECK_THAT(taken.out, !Catch::Contains("left out"));
    check_equal(taken, straight, {.part = ""});
  }
  SECTION("another codec, another rule") {
    const Sets other = {"exchange.codec=int8", "optimizer.rule=adam",
                        "optimizer.momentum=", "optimizer.learning_rate=0.002"};
    const std::string says =
        "optimiser states left out: momentum; those of rule \"adam\" begin at zero: first_moment, second_moment; "
        "residuals left out of codec \"topk\" with strategy \"synchronous\"";
    CHECK(train_run(trial, "taken", {{2, other, says}}, from).summary()["test_accuracy"].get<double>() > 0.9);
  }
}

TEST_CASE("plain sgd saves no momentum; who takes it up with momentum says that it begins at zero",
          "[run][resume_from]") {
  const Trial trial;
  train_source(trial, 0, {"optimizer.momentum=0"});
  CHECK(checkpoint_values(trial.run("source") + "/checkpoints/step-00000020.h5", "optimiser/").empty());
  train_run(
      trial, "heavy",
      {{0, {"run.resume_from=results/source", "train.steps=21"}, "; those of rule \"sgd\" begin at zero: momentum\n"}});
  train_run(trial, "plain",
            {{0,
              {"run.resume_from=results/heavy", "optimizer.momentum=0", "train.steps=22"},
              "; optimiser states left out: momentum\n"}});
}

TEST_CASE("the weights alone begin a run at step 0", "[run][resume_from]") {
  const Trial trial;
  train_source(trial, 0);
  const std::string file = trial.run("source") + "/checkpoints/step-00000017.h5";
  const TrainedRun tuned = train_run(trial, "tuned",
                                     {{0,
                                       {"run.resume_from=" + file, "run.resume_weights_only=true", "batch.global=40",
                                        "train.steps=1", "optimizer.learning_rate=0"},
                                       "from step 0 with the weights of another run, at its step 17: "}});
  CHECK(steps_of(trial, "tuned") == std::vector<int>{1});
  CHECK(tuned.values("weights/") == checkpoint_values(file, "weights/"));
}

TEST_CASE("a run that starts at step 0 is told of checkpoints of other runs of its name", "[run][resume_from]") {
  const Trial trial;
  const Outcome first = trial.train(0, {"train.steps=5"});
  REQUIRE(first.code == kExitOk);
  CHECK_THAT(first.out, !Catch::Contains("hint"));
  const std::string source = trial.run().substr(trial.run().find("results/"));
  const Sets other = {"optimizer.weight_decay=0.001", "train.steps=5"};
  const std::string hint = "hint +" + source + " has a checkpoint of step 5, from another config: --set " +
                           "run.resume_from=" + source + " starts from it";
  CHECK_THAT(trial.check(other).out, Catch::Matches("[^]*" + hint + "\n[^]*"));
  const Outcome second = trial.train(0, other);
  INFO(second.out << second.err);
  REQUIRE(second.code == kExitOk);
  CHECK_THAT(second.out, Catch::Matches("[^]*" + hint + "\n[^]*"));
}

TEST_CASE("what cannot be taken up is refused by check and train alike, and leaves no folder", "[run][resume_from]") {
  const Trial trial;
  train_source(trial, 0);
  const std::string source = trial.run("source"), file = source + "/checkpoints/step-00000020.h5";
  fs::create_directories(trial / "fewer");
  fs::copy_file(trial / "train/shard-0.h5", trial / "fewer/shard-0.h5");
  const auto refuse = [&](int code, const Sets& sets, const std::vector<std::string>& words) {
    const Sets all = with({"name=taken", "run.resume_from=" + source}, sets);
    for (const Outcome& outcome : {trial.check(all), trial.train(0, all)}) {
      INFO(outcome.out << outcome.err);
      CHECK(outcome.code == code);
      for (const std::string& word : words) CHECK_THAT(outcome.err, Catch::Contains(word));
    }
    CHECK(!fs::exists(trial / "results/taken"));
  };
  refuse(kExitConfig, {"model.zoo=cnn_32_64", "model.label_smoothing="},
         {"--set run.resume_from=", "belongs to another model",
          "'weights/conv1.weight' is (16, 1, 3, 3), but this model needs"});
  refuse(kExitConfig, {"batch.global=40"}, {"--set batch.global=40", "in steps of 48 samples", "resume_weights_only"});
  refuse(kExitConfig, {"data.train=fewer"}, {"--set data.train=fewer", "trained on 800 samples", "holds 300"});
  refuse(kExitConfig, {"train.steps=20"}, {"is at step 20, and this run ends at step 20", "train.epochs = 3"});
  refuse(kExitConfig, {"run.resume_from=nowhere"}, {"--set run.resume_from=nowhere", "nowhere: does not exist"});
  refuse(kExitConfig, {"run.resume_from=", "run.resume_weights_only=true"},
         {"run.resume_weights_only is not used here"});
  std::string bytes = read_file_whole(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file_whole(file, bytes);
  refuse(kExitData, {"run.resume_from=" + file}, {"step-00000020.h5 is damaged"});
  const Outcome passed_over = trial.train(0, {"name=taken", "run.resume_from=" + source});
  CHECK(passed_over.code == kExitOk);
  CHECK_THAT(passed_over.out, Catch::Contains("from step 17 of another run"));
}

}  // namespace echelon::test
