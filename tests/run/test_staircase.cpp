// Staircases as a user runs them: the weights of the unsplit run, checkpoints that any split takes up, refusals.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>

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

TEST_CASE("a staircase of carried states and dropout goes on unsplit and back, and is the unsplit run", "[run]") {
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
  CHECK_THAT(out, Contains("staircase 9 steps in 4 chunks") && Contains("(p-1)/(m c+p-1) is 20.0 %"));
  leg(1, {"train.steps=7"});
  leg(4, {"train.steps=11", "parallel.pipeline=2", "parallel.time_chunks=9"});
  leg(1, {"parallel.time_chunks=2"});
  for (const char* prefix : {"weights/", "carried/"})
    CHECK(test::relative_distance(state(trial, prefix), state(whole, prefix)) < 1e-8);
  CHECK(state(whole, "carried/").size() == 8 * (2 * 6 + 6));
  CHECK(trial.summary()["test_loss"].get<double>() == Approx(whole.summary()["test_loss"].get<double>()).epsilon(1e-9));
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

TEST_CASE("check draws a staircase", "[run]") {
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
