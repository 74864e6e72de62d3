// Runs that begin from a checkpoint of another run (run.resume_from).
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {
namespace {

namespace fs = std::filesystem;

Sets with(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

Outcome check(const Trial& trial, const Sets& sets) {
  std::vector<std::string> argv = {echelon_binary(), "check", "trial.toml"};
  for (const std::string& set : sets) argv.insert(argv.end(), {"--set", set});
  return run_process({.argv = argv, .cwd = trial / "", .env = {}, .limit_s = 60});
}

std::vector<int> steps_of(const Trial& trial, const std::string& name) {
  std::vector<int> steps;
  for (const auto& row : trial.metrics(name))
    if (row["type"] == "step") steps.push_back(row["step"].get<int>());
  return steps;
}

std::vector<double> weights(const Trial& trial, const std::string& name, int step) {
  return checkpoint_values(fmt::format("{}/checkpoints/step-{:08d}.h5", trial.run(name), step), "weights/");
}

// 20 steps of a run of this name.
void train_source(const Trial& trial, int ranks, const Sets& sets = {}) {
  const Outcome outcome = trial.train(ranks, with({"name=source", "train.steps=20"}, sets));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
}

}  // namespace

TEST_CASE("another algorithm takes a run up where it was, to the same bits, and then goes on by itself",
          "[run][resume_from]") {
  const Trial trial;
  const Sets other = {"name=taken", "exchange.algorithm=naive", "run.resume_from=results/source"};
  REQUIRE(trial.train(2, {"name=straight"}).code == kExitOk);
  train_source(trial, 2);
  const Outcome begun = trial.train(2, with(other, {"train.steps=30"}));
  INFO(begun.out << begun.err);
  REQUIRE(begun.code == kExitOk);
  CHECK_THAT(begun.out, Catch::Contains("from step 20 of another run: results/source/run-"));
  CHECK_THAT(begun.out, !Catch::Contains("left out") && !Catch::Contains("hint"));
  const Outcome foreseen = check(trial, other);
  CHECK(foreseen.code == kExitOk);
  CHECK_THAT(foreseen.out, Catch::Contains("start       from step 30: results/taken/run-"));
  fs::remove_all(trial / "results/source");  // what it named is needed no more
  const Outcome finished = trial.train(2, other);
  INFO(finished.out << finished.err);
  REQUIRE(finished.code == kExitOk);
  CHECK_THAT(finished.out, Catch::Contains("from step 30: results/taken/run-"));
  CHECK(trial.summary("taken")["weights_checksum"] == trial.summary("straight")["weights_checksum"]);
  std::vector<int> steps;
  for (int step = 21; step <= 51; ++step) steps.push_back(step);
  CHECK(steps_of(trial, "taken") == steps);
  CHECK_THAT(check(trial, other).out, Catch::Contains("finished already, at step 51"));
}

TEST_CASE("a pipeline, and parameter servers, take up a run that was not split", "[run][resume_from][slow]") {
  const Trial trial;
  constexpr int kEnd = 26;
  const std::string end = fmt::format("train.steps={}", kEnd);
  REQUIRE(trial.train(0, {"name=straight", end}).code == kExitOk);
  train_source(trial, 0);
  const auto [ranks, sets] =
      GENERATE(table<int, Sets>({{2, {"parallel.pipeline=2", "batch.accumulation=4"}},
                                 {3, {"exchange.strategy=server", "exchange.server.ranks=1", "batch.shares=[1, 2]"}}}));
  const std::string from = trial.run("source") + "/01";  // the folder of an attempt
  const Outcome outcome = trial.train(ranks, with({"name=taken", "run.resume_from=" + from, end}, sets));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  CHECK_THAT(outcome.out, Catch::Contains("from step 20 of another run: ") && !Catch::Contains("left out"));
  CHECK(steps_of(trial, "taken").front() == 21);
  const std::vector<double> found = weights(trial, "taken", kEnd), expected = weights(trial, "straight", kEnd);
  REQUIRE(found.size() == expected.size());
  double furthest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) furthest = std::max(furthest, std::fabs(found[i] - expected[i]));
  CHECK(furthest < 1e-5);
}

TEST_CASE("residuals go along where strategy and codec are the same, and are left out aloud where not",
          "[run][resume_from][slow]") {
  const Trial trial;
  const Sets coded = {"exchange.codec=topk", "exchange.density=0.05"};
  REQUIRE(trial.train(2, with(coded, {"name=straight"})).code == kExitOk);
  train_source(trial, 2, coded);
  const Sets from = {"name=taken", "run.resume_from=results/source"};
  SECTION("the same codec") {
    const Outcome outcome = trial.train(2, with(with(from, coded), {"exchange.verify_every_steps=7"}));
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    CHECK_THAT(outcome.out, !Catch::Contains("left out"));
    CHECK(trial.summary("taken")["weights_checksum"] == trial.summary("straight")["weights_checksum"]);
  }
  SECTION("another codec, another rule") {
    const Sets other = with(
        from, {"exchange.codec=int8", "optimizer.rule=adam", "optimizer.momentum=", "optimizer.learning_rate=0.002"});
    const Outcome outcome = trial.train(2, other);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    const std::string told =
        "optimiser states left out: momentum; those of rule \"adam\" begin at zero: first_moment, second_moment; "
        "residuals left out of codec \"topk\" with strategy \"synchronous\"";
    CHECK_THAT(outcome.out, Catch::Contains(told));
    CHECK(trial.summary("taken")["test_accuracy"].get<double>() > 0.9);
  }
}

TEST_CASE("plain sgd saves no momentum; who takes it up with momentum says that it begins at zero",
          "[run][resume_from]") {
  const Trial trial;
  train_source(trial, 0, {"optimizer.momentum=0"});
  CHECK(checkpoint_values(trial.run("source") + "/checkpoints/step-00000020.h5", "optimiser/").empty());
  const Outcome heavy = trial.train(0, {"name=heavy", "run.resume_from=results/source", "train.steps=21"});
  INFO(heavy.out << heavy.err);
  REQUIRE(heavy.code == kExitOk);
  CHECK_THAT(heavy.out, Catch::Contains("; those of rule \"sgd\" begin at zero: momentum\n"));
  const Outcome plain =
      trial.train(0, {"name=plain", "run.resume_from=results/heavy", "optimizer.momentum=0", "train.steps=22"});
  INFO(plain.out << plain.err);
  REQUIRE(plain.code == kExitOk);
  CHECK_THAT(plain.out, Catch::Contains("; optimiser states left out: momentum\n"));
}

TEST_CASE("the weights alone begin a run at step 0", "[run][resume_from]") {
  const Trial trial;
  train_source(trial, 0);
  const std::string file = trial.run("source") + "/checkpoints/step-00000017.h5";
  const Outcome outcome = trial.train(0, {"name=tuned", "run.resume_from=" + file, "run.resume_weights_only=true",
                                          "batch.global=40", "train.steps=1", "optimizer.learning_rate=0"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  CHECK_THAT(outcome.out, Catch::Contains("from step 0 with the weights of another run, at its step 17: "));
  CHECK(steps_of(trial, "tuned") == std::vector<int>{1});
  CHECK(weights(trial, "tuned", 1) == checkpoint_values(file, "weights/"));
}

TEST_CASE("a run from the first step on is told what other runs of its name have", "[run][resume_from]") {
  const Trial trial;
  const Outcome first = trial.train(0, {"train.steps=5"});
  REQUIRE(first.code == kExitOk);
  CHECK_THAT(first.out, !Catch::Contains("hint"));
  const std::string source = trial.run().substr(trial.run().find("results/"));
  const Sets other = {"optimizer.weight_decay=0.001", "train.steps=5"};
  const std::string hint = "hint +" + source + " has a checkpoint of step 5, by another config: --set " +
                           "run.resume_from=" + source + " starts from it";
  CHECK_THAT(check(trial, other).out, Catch::Matches("[^]*" + hint + "\n[^]*"));
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
    for (const Outcome& outcome : {check(trial, all), trial.train(0, all)}) {
      INFO(outcome.out << outcome.err);
      CHECK(outcome.code == code);
      for (const std::string& word : words) CHECK_THAT(outcome.err, Catch::Contains(word));
    }
    CHECK(!fs::exists(trial / "results/taken"));
  };
  refuse(
      kExitConfig, {"model.zoo=lenet", "model.label_smoothing="},
      {"--set run.resume_from=", "is of another model", "'weights/conv1.weight' is (16, 1, 3, 3), this model needs"});
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
