// Time-chunk pipelines as a user runs them: the weights of the unsplit run, checkpoints that any split takes up,
// refusals.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <utility>
#include <vector>

#include "base/hash_rng.hpp"
#include "tests/run/trial.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

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

// 2,000 letters of 9.
void make_letters(const test::Trial& trial) {
  const HashRng draws(1, "letters");
  {
    std::ofstream file(trial / "letters.txt");
    for (std::uint64_t i = 0, state = 1; i < 2000; ++i) {
      state = (5 * state + (draws.below(i, 8) == 0 ? 3 : 1)) % 17;
      file << static_cast<char>('a' + state / 2);
    }
  }
  const test::Outcome outcome =
      test::run_process({.argv = {test::echelon_binary(), "data", "import", "text", "letters.txt", "--hold-out-part",
                                  "0.1", "--out", "letters"},
                         .cwd = trial / "",
                         .env = {},
                         .limit_s = 30});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
}

std::vector<double> state(const test::Trial& trial, const std::string& prefix) {
  const std::int64_t step = trial.summary()["steps"];
  return test::checkpoint_values(fmt::format("{}/checkpoints/step-{:08}.h5", trial.run(), step), prefix);
}

TEST_CASE(
    "a time-chunk pipeline of carried states and dropout goes on unsplit, by units and back, and is the unsplit run",
    "[run]") {
  const test::Trial whole(kStack), trial(kStack);
  for (const test::Trial* each : {&whole, &trial}) make_letters(*each);
  REQUIRE(whole.train(1).code == 0);
  const auto leg = [&](int ranks, const test::Sets& sets) {
    const test::Outcome outcome = trial.train(ranks, sets);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  const std::string out = leg(2, {"train.steps=4", "parallel.pipeline=2", "parallel.time_chunks=4"});
  CHECK_THAT(out, Contains("chunks    9 steps in 4 time chunks") && Contains("(p-1)/(m c+p-1) is 20.0 %"));
  leg(1, {"train.steps=6"});
  const std::string parts = leg(2, {"train.steps=8", "parallel.tensor=2", "parallel.recurrent_from=1"});
  CHECK_THAT(parts, Contains("inside replicas"));
  leg(4, {"train.steps=10", "parallel.pipeline=2", "parallel.time_chunks=9"});
  leg(3, {"train.steps=12", "parallel.tensor=3", "parallel.recurrent_from=6", "parallel.time_chunks=2"});
  leg(1, {"parallel.time_chunks=2"});
  for (const char* prefix : {"weights/", "carried/"})
    CHECK(test::relative_distance(state(trial, prefix), state(whole, prefix)) < 1e-8);
  CHECK(state(whole, "carried/").size() == 8 * (2 * 6 + 6));
  CHECK(trial.summary()["test_loss"].get<double>() == Approx(whole.summary()["test_loss"].get<double>()).epsilon(1e-9));
}

TEST_CASE("what parts of recurrent layers owe by their codec goes on unsplit and back", "[run]") {
  const test::Trial trial(kStack);
  make_letters(trial);
  const test::Sets parts = {"parallel.tensor=2", "parallel.recurrent_from=1"};
  int steps = 0;
  for (const auto& [ranks, split] : std::vector<std::pair<int, bool>>{{4, true}, {2, false}, {4, true}, {1, false}}) {
    test::Sets sets = split ? parts : test::Sets{};
    for (const std::string& set : {std::string("device.kind=onednn"), std::string("device.dtype=f32"),
                                   std::string("exchange.codec=onebit"), fmt::format("train.steps={}", steps += 3)})
      sets.push_back(set);
    const test::Outcome outcome = trial.train(ranks, sets);
    INFO(ranks << " ranks: " << outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
  }
  CHECK(trial.attempts() == 4);
}

TEST_CASE("time that cannot be cut is refused with the layer and its line", "[run]") {
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
  const test::Outcome outcome = test::run_process({.argv = {test::echelon_binary(), "check", "trial.toml", "--set",
                                                            "parallel.pipeline=2", "--set", "parallel.time_chunks=3"},
                                                   .cwd = trial / "",
                                                   .env = {},
                                                   .limit_s = 60});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("3 tensors between stages") && Contains("1 micro-batch of 3 chunks") &&
                              Contains("bubble at least 25.0 %"));
}

}  // namespace
}  // namespace echelon
