// SPDX-License-Identifier: Apache-2.0
// Time-chunk pipelines as a user runs them: they have the weights of the unsplit run and checkpoints that any split can
// resume; unsuitable settings are refused.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <utility>
#include <vector>

#include "base/hash_rng.hpp"
#include "tests/run/compare.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::with;

constexpr const char* kStack = R"(name = "trial"
[data]
train = "letters/train"
test = "letters/test"
order = "stream"
sequence_length = 9
[batch]
global = 8
[train]
epochs = 2
steps = 15
[optimizer]
rule = "adam"
learning_rate = 0.01
[evaluate]
batch = 4
[device]
kind = "reference"
dtype = "f64"
[checkpoint]
every_epochs = 0
[[model.layers]]
type = "embedding"
units = 4
[[model.layers]]
type = "lstm"
units = 6
carry = true
[[model.layers]]
type = "dropout"
rate = 0.25
[[model.layers]]
type = "gru"
units = 6
carry = true
[[model.layers]]
type = "dense"
units = 9
)";

// Writes 2,000 letters, of 9 different ones.
void make_letters(const test::Trial& trial) {
  const HashRng draws(1, "letters");
  {
    std::ofstream file(trial / "letters.txt");
    for (std::uint64_t i = 0, state = 1; i < 2000; ++i) {
      state = (5 * state + (draws.below(i, 8) == 0 ? 3 : 1)) % 17;
      file << static_cast<char>('a' + state / 2);
    }
  }
  trial.make_data({"import", "text", "letters.txt", "--hold-out-part", "0.1", "--out", "letters"});
}

TEST_CASE(
    "a time-chunk pipeline of carried states and dropout goes on unsplit, by units and back, and is the unsplit run",
    "[run]") {
  const test::Trial trial(kStack);
  make_letters(trial);
  const test::TrainedRun whole = test::train_run(trial, "whole", {{1}});
  const test::TrainedRun first = test::train_run(
      trial, "trial",
      {{2, {"train.steps=4", "parallel.pipeline=2", "parallel.time_chunks=4"}, "chunks    9 time steps in 4 chunks"}});
  CHECK_THAT(first.out, Contains("(p-1)/(m c+p-1) is 20.0 %"));
  const test::TrainedRun last = test::train_run(
      trial, "trial",
      {{1, {"train.steps=6"}},
       {2, {"train.steps=8", "parallel.tensor=2", "parallel.recurrent_from=1"}, "inside replicas"},
       {4, {"train.steps=10", "parallel.pipeline=2", "parallel.time_chunks=9"}},
       {3, {"train.steps=12", "parallel.tensor=3", "parallel.recurrent_from=6", "parallel.time_chunks=2"}},
       {1, {"parallel.time_chunks=2"}}});
  check_equal(last, whole, {.part = "weights/", .within = 1e-8, .evaluation = true});
  check_equal(last, whole, {.part = "carried/", .within = 1e-8});
  CHECK(whole.values("carried/").size() == 8 * (2 * 6 + 6));
}

TEST_CASE("residuals of split recurrent layers are resumed unsplit and back", "[run]") {
  const test::Trial trial(kStack);
  make_letters(trial);
  const test::Sets parts = {"parallel.tensor=2", "parallel.recurrent_from=1"};
  std::vector<test::Leg> legs;
  for (const auto& [ranks, split] : std::vector<std::pair<int, bool>>{{4, true}, {2, false}, {4, true}, {1, false}})
    legs.push_back({ranks, with(split ? parts : test::Sets{}, {fmt::format("train.steps={}", 3 * legs.size() + 3)})});
  test::train_run(trial, "trial", legs, {"device.kind=onednn", "device.dtype=f32", "exchange.codec=onebit"});
  CHECK(trial.attempts() == 4);
}

TEST_CASE("an impossible number of time chunks is refused with the layer and its line", "[run]") {
  const test::Trial trial(kStack);
  make_letters(trial);
  const auto refused = [&](const test::Sets& sets) {
    const test::Outcome outcome = trial.train(0, sets);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 2);
    return outcome.err;
  };
  CHECK_THAT(refused({"parallel.time_chunks=10"}),
             Contains("trial.toml:22: layer 'embedding1' takes sequences of 9 steps") && Contains("at most 9"));
  const test::Trial images;
  const test::Outcome outcome = images.train(0, {"parallel.time_chunks=2"});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Contains("parallel.time_chunks = 2") && Contains("the model has none"));
}

TEST_CASE("check prints the messages and the bubble of a time-chunk pipeline", "[run]") {
  const test::Trial trial(kStack);
  make_letters(trial);
  const test::Outcome outcome = trial.check({"parallel.pipeline=2", "parallel.time_chunks=3"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("3 tensors between stages") && Contains("1 micro-batch of 3 chunks") &&
                              Contains("bubble at least 25.0 %"));
}

}  // namespace
}  // namespace echelon
