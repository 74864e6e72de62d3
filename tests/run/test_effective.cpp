// SPDX-License-Identifier: Apache-2.0
// A run's stored config is used again by train, eval and export, also by one rank where the run had several.
#include <catch2/catch.hpp>

#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("a stored config whose defaults gave way to other keys is read again by every verb", "[run]") {
  for (const char* set : {"optimizer.clip_norm=1", "exchange.algorithm=mpi"}) {
    const test::Trial trial;
    const bool first = std::string_view(set).starts_with("optimizer");  // ends in epoch 1; else in 2; 17 steps each
    const test::Outcome run = trial.train(0, {set, first ? "train.steps=2" : "train.steps=20", "train.epochs=0"});
    REQUIRE(run.code == 0);
    CHECK_THAT(run.out, Contains(first ? "within epoch 1" : "within epoch 2"));
    CHECK_THAT(run.out, !Contains("epoch 0") && !Contains("epoch 1/"));
    CHECK((run.out.find("\nepoch 1  train loss") == std::string::npos) == first);
    for (const std::vector<std::string>& words : {std::vector<std::string>{"train", trial.attempt() + "/config.toml"},
                                                  {"eval", "results/trial", "test"},
                                                  {"export", "results/trial", "--out", "weights.safetensors"}}) {
      const test::Outcome again = trial.echelon(words);
      INFO(set << " " << words.front() << "\n" << again.out << again.err);
      CHECK(again.code == 0);
      if (words.front() == "train") CHECK_THAT(again.out, Contains("already finished"));
    }
    CHECK(trial.attempts() == 1);
  }
}

TEST_CASE("one config for a split model trains on one rank, which goes on with two", "[run]") {
  const test::Trial trial;
  const test::Sets sets = {"parallel.pipeline=2", "parallel.schedule=gpipe", "batch.accumulation=4"};
  const auto steps = [&](const char* count) {
    test::Sets all = sets;
    all.push_back(std::string("train.steps=") + count);
    return all;
  };
  const test::Outcome alone = trial.train(1, steps("5"));
  INFO(alone.out << alone.err);
  REQUIRE(alone.code == 0);
  CHECK_THAT(alone.out, Contains("note      the model is not split, because [parallel] needs groups of 2 ranks"));
  CHECK(trial.summary()["mesh"]["pipeline"] == 1);
  const test::Outcome two = trial.train(2, steps("10"));
  INFO(two.out << two.err);
  REQUIRE(two.code == 0);
  CHECK_THAT(two.out, Contains("resuming  from step 5"));
  CHECK(trial.summary()["mesh"]["pipeline"] == 2);
}

}  // namespace
}  // namespace echelon
