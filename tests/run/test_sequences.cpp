// SPDX-License-Identifier: Apache-2.0
// Texts and sequences from import to training, as a user has them.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/hash_rng.hpp"
#include "tests/run/compare.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

using test::check_equal;
using test::train_run;

// Writes sequences of 3 to 17 steps of 2 numbers; the class is the direction in which they move.
void write_steps(const std::string& path, int sequences) {
  const HashRng draws(1, path.substr(path.rfind('/')));
  std::ofstream file(path);
  for (int i = 0; i < sequences; ++i) {
    const auto at = draws.at(static_cast<std::uint64_t>(i));
    const double angle = 2 * M_PI * (i % 4) / 4;
    double x = at.uniform(100), y = at.uniform(101);
    for (std::uint64_t t = 0; t < 3 + at.below(102, 15); ++t) {
      x += std::cos(angle) + 0.4 * hash_normal(at, 2 * t);
      y += std::sin(angle) + 0.4 * hash_normal(at, 2 * t + 1);
      file << fmt::format("s{},{},{:.4f},{:.4f}\n", i, i % 4, x, y);
    }
  }
}

constexpr const char* kSteps = R"(name = "trial"
[data]
train = "train"
test = "test"
sharding = "record"
buckets = 3
[batch]
global = 24
[train]
epochs = 4
[optimizer]
rule = "adam"
learning_rate = 0.02
[device]
kind = "reference"
dtype = "f64"
[[model.layers]]
type = "dense"
units = 8
[[model.layers]]
type = "tanh"
[[model.layers]]
type = "sequence_pool"
[[model.layers]]
type = "dense"
units = 4
)";

TEST_CASE("buckets: k replicas have the weights and evaluation of one", "[run]") {
  const test::Trial trial(kSteps);
  write_steps(trial / "train.csv", 150);
  write_steps(trial / "test.csv", 61);
  for (const std::string part : {"train", "test"})
    trial.make_data({"import", "sequences", part + ".csv", "--out", part, "--shards", "2"});
  const test::TrainedRun one = train_run(trial, "trial", {{1, {}, "buckets of up to"}});
  CHECK(one.summary()["test_accuracy"].get<double>() > 0.9);
  CHECK(!one.summary().contains("tokens_per_s"));
  for (const int ranks : {2, 3})
    check_equal(train_run(trial, fmt::format("on{}", ranks), {{ranks}}), one, {.within = 1e-8, .evaluation = true});
}

TEST_CASE("data and orders that do not go together are refused before anything starts", "[run]") {
  const test::Trial trial(kSteps);
  write_steps(trial / "train.csv", 60);
  trial.make_data({"import", "sequences", "train.csv", "--out", "train"});
  const auto refused = [&](const test::Sets& sets) {
    test::Sets all = {"data.test="};
    all.insert(all.end(), sets.begin(), sets.end());
    const test::Outcome outcome = trial.train(0, all);
    CHECK(outcome.code == 2);
    return outcome.err;
  };
  CHECK_THAT(refused({"data.buckets=[]", "data.order=stream"}), Contains("needs a label for each step"));
  CHECK_THAT(refused({"data.augment_flip=true"}), Contains("is for images"));
  CHECK_THAT(refused({"data.buckets=[4, 2]"}), Contains("must increase"));
  CHECK_FALSE(fs::exists(trial / "results"));
}

// Writes words of 2 to 9 letters, each with its reverse.
void write_pairs(const std::string& path, int pairs) {
  const HashRng draws(1, "pairs");
  std::ofstream file(path);
  for (int i = 0; i < pairs; ++i) {
    const auto at = draws.at(static_cast<std::uint64_t>(i));
    std::string word;
    for (std::uint64_t t = 0; t < 2 + at.below(100, 8); ++t) word += static_cast<char>('a' + at.below(t, 5));
    file << word << '\t' << std::string(word.rbegin(), word.rend()) << '\n';
  }
}

constexpr const char* kPairs = R"(name = "trial"
[data]
train = "pairs/train"
test = "pairs/test"
buckets = 2
[batch]
global = 18
[train]
epochs = 2
[optimizer]
rule = "adam"
learning_rate = 0.02
[device]
kind = "reference"
dtype = "f64"
[[model.layers]]
type = "embedding"
units = 5
inputs = ["samples"]
[[model.layers]]
type = "lstm"
name = "encoder"
units = 7
[[model.layers]]
type = "embedding"
name = "said"
units = 5
inputs = ["target"]
[[model.layers]]
type = "lstm"
units = 7
inputs = ["said", "encoder.1", "encoder.2"]
[[model.layers]]
type = "dense"
units = 7
)";

TEST_CASE("pairs: k replicas have the weights of one, though their numbers of tokens differ", "[run]") {
  const test::Trial trial(kPairs);
  write_pairs(trial / "pairs.tsv", 130);
  trial.make_data(
      {"import", "pairs", "pairs.tsv", "--tokens", "characters", "--hold-out-part", "0.2", "--out", "pairs"});
  const test::TrainedRun one = train_run(trial, "trial", {{1}});
  const auto rows = trial.metrics();
  CHECK(rows[0]["samples"] == 18);
  CHECK(rows[0]["tokens"].get<double>() > 18 * 3);
  for (const int ranks : {2, 3})
    check_equal(train_run(trial, fmt::format("on{}", ranks), {{ranks}}), one, {.within = 1e-8, .evaluation = true});
}

// Writes 3,000 letters, each of which depends on many letters before it.
void write_letters(const std::string& path) {
  const HashRng draws(1, "letters");
  std::ofstream file(path);
  int state = 1;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    state = (5 * state + (draws.below(i, 8) == 0 ? 3 : 1)) % 17;
    file << (i % 40 == 39 ? '\n' : static_cast<char>('a' + state / 2));
  }
}

constexpr const char* kLetters = R"(name = "trial"
[data]
train = "letters/train"
test = "letters/test"
order = "stream"
sequence_length = 8
[batch]
global = 12
[train]
epochs = 2
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
units = 6
[[model.layers]]
type = "lstm"
units = 10
carry = true
[[model.layers]]
type = "dense"
units = 10
)";

// Imports the letters and holds out the last tenth: 2,700 letters in 336 windows, 28 steps an epoch.
void make_letters(const test::Trial& trial) {
  write_letters(trial / "letters.txt");
  trial.make_data({"import", "text", "letters.txt", "--hold-out-part", "0.1", "--shards", "2", "--out", "letters"});
}

TEST_CASE("streams with carried states: k replicas have the weights of one, with micro-batches and as_replicas too",
          "[run]") {
  const test::Trial trial(kLetters);
  make_letters(trial);
  const test::TrainedRun one = train_run(trial, "trial", {{1}});
  CHECK_THAT(one.out, Contains("streams; 28 steps an epoch") && Contains("nats a token (perplexity"));
  CHECK(trial.summary()["tokens_per_s"]["median"].get<double>() > 0);
  const double loss = trial.summary()["test_loss"];
  CHECK(trial.summary()["test_perplexity"].get<double>() == Approx(std::exp(loss)));
  CHECK(trial.metrics()[0]["tokens"] == 12 * 8);
  CHECK(trial.metrics()[0]["samples"] == 12);
  struct Row {
    const char* name;
    int ranks;
    test::Sets sets;
  };
  for (const Row& row : {Row{"two", 2, {}}, Row{"three", 3, {}}, Row{"micro", 2, {"batch.accumulation=3"}},
                         Row{"unequal", 2, {"batch.shares=[1, 3]"}}, Row{"standin", 1, {"data.as_replicas=2"}},
                         Row{"stages", 3, {"batch.accumulation=3", "parallel.pipeline=3"}},
                         Row{"together", 3, {"batch.accumulation=3", "parallel.pipeline=3", "parallel.schedule=gpipe"}},
                         Row{"chunks", 3, {"batch.accumulation=3", "parallel.pipeline=3", "parallel.time_chunks=2"}},
                         Row{"words", 4, {"batch.accumulation=3", "parallel.tensor=2"}},
                         Row{"stages_standin", 2, {"data.as_replicas=2", "parallel.pipeline=2"}}})
    check_equal(train_run(trial, row.name, {{row.ranks, row.sets}}), one, {.within = 1e-8, .evaluation = true});
}

TEST_CASE("a run stopped inside an epoch goes on with the states that it carried, to the last bit", "[run]") {
  const test::Trial trial(kLetters);
  make_letters(trial);
  const int ranks = GENERATE(1, 2);
  const test::TrainedRun whole = train_run(trial, "whole", {{ranks}});
  const test::TrainedRun stopped = train_run(
      trial, "stopped", {{ranks, {"train.steps=11"}}, {ranks, {"train.steps=40"}}, {ranks, {}, "from step 40:"}});
  check_equal(stopped, whole, {.part = ""});
  CHECK(stopped.values("carried/").size() == 2 * 12 * 10);  // h and c of every row
  // The number of ranks changes each time: the states must follow their rows.
  if (ranks == 1)
    check_equal(train_run(trial, "changing", {{3, {"train.steps=11"}}, {1, {"train.steps=40"}}, {2}}), whole,
                {.within = 1e-8});
}

TEST_CASE("carried states of every stage of every replica follow their rows to one rank", "[run]") {
  const test::Trial trial(kLetters);
  make_letters(trial);
  const test::Sets end = {"train.steps=40"};
  // Each of two replicas has an embedding, a recurrent and an output stage; the middle stage has the states.
  const test::TrainedRun split = train_run(trial, "split", {{6, {"train.steps=11", "parallel.pipeline=3"}}});
  const std::vector<double> carried = split.values("carried/");
  REQUIRE(carried.size() == 2 * 12 * 10);
  CHECK(std::count(carried.begin(), carried.end(), 0.0) == 0);
  check_equal(train_run(trial, "split", {{1}}, end), train_run(trial, "whole", {{1}}, end), {.within = 1e-8});
}

TEST_CASE("carried states change the result, and need data.order = stream", "[run]") {
  const test::Trial trial(kLetters);
  make_letters(trial);
  const test::Outcome outcome = trial.train(1, {"data.order=samples"});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Contains("carry = true") && Contains("data.order = \"stream\""));
  std::string plain = kLetters;
  plain.replace(plain.find("carry = true"), 12, "carry = false");
  const test::Trial without(plain);
  make_letters(without);
  const std::vector<double> carrying = train_run(trial, "trial", {{1}}).values("weights/");
  CHECK(test::relative_distance(train_run(without, "trial", {{1}}).values("weights/"), carrying) > 1e-3);
}

}  // namespace
}  // namespace echelon
