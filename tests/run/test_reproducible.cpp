// SPDX-License-Identifier: Apache-2.0
// train.reproducible as a user runs it: 1, 2 and 4 ranks leave the same weights and the same records, and another
// number of ranks resumes a run to the same bits.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/cores.hpp"
#include "tests/run/compare.hpp"
#include "tests/support/skip.hpp"

namespace echelon {
namespace {

const test::Sets kReproducible = {"train.reproducible=true", "exchange.algorithm=butterfly", "train.steps=20",
                                  "optimizer.clip_norm=1.0", "evaluate.every_epochs=1"};

using test::check_equal;
using test::train_run;
using test::with;

// The records of all steps, the weights and the optimiser's states must not depend on the number of ranks.
void check_same(const test::TrainedRun& run, const test::TrainedRun& one) {
  CHECK(run.summary()["weights_checksum"] == one.summary()["weights_checksum"]);
  CHECK(one.values("weights/").size() > 1000);
  check_equal(run, one, {.part = "weights/", .steps = 20});
  check_equal(run, one, {.part = "optimiser/"});
}

TEST_CASE("reproducible: split models have the same bits on any number of replicas", "[run]") {
  const test::Sets split = GENERATE(test::Sets{"parallel.pipeline=2"}, test::Sets{"parallel.tensor=2"});
  const test::Trial trial;
  const test::Sets sets = with(kReproducible, with(split, {"batch.global=48", "train.micro_shards=4"}));
  const test::TrainedRun one = train_run(trial, "one", {{2}}, sets);
  check_same(train_run(trial, "two", {{4}}, sets), one);
}

TEST_CASE("reproducible: 1, 2, 4 and 8 ranks end with the same weights, states, losses and accuracies", "[run]") {
  const test::Trial trial;
  const test::TrainedRun one = train_run(trial, "one", {{0}}, kReproducible);
  for (const int ranks : {2, 4}) {
    const test::TrainedRun run = train_run(trial, fmt::format("on{}", ranks), {{ranks}}, kReproducible);
    check_same(run, one);
    check_equal(run, one, {.epochs = 2});
  }
  for (const std::string algorithm : {"butterfly", "halving_doubling", "binomial"})
    check_same(train_run(trial, algorithm, {{8, {"exchange.algorithm=" + algorithm}}}, kReproducible), one);
}

TEST_CASE("reproducible: begun on 2 ranks, taken up by 4 and by 1, the bits of an undisturbed run on 1", "[run]") {
  const test::Trial trial;
  const test::TrainedRun whole = train_run(trial, "whole", {{0}}, kReproducible);
  const test::TrainedRun changing =
      train_run(trial, "changing", {{2, {"train.steps=7"}}, {4, {"train.steps=14"}}, {0}}, kReproducible);
  CHECK(trial.attempts("changing") == 3);
  check_same(changing, whole);
}

constexpr const char* kImages = R"(name = "trial"
[data]
train = "train"
sharding = "record"
augment_crop_padding = 1
augment_flip = true
[batch]
global = 48
[train]
epochs = 0
steps = 20
reproducible = true
micro_shards = 4
[exchange]
algorithm = "halving_doubling"
[optimizer]
rule = "lamb"
clip_norm = 1.0
[device]
kind = "onednn"
threads = 2
[[model.layers]]
type = "conv"
channels = 16
kernel = 3
padding = 1
[[model.layers]]
type = "batch_norm"
[[model.layers]]
type = "relu"
[[model.layers]]
type = "dropout"
rate = 0.25
[[model.layers]]
type = "flatten"
[[model.layers]]
type = "dense"
units = 10
)";

TEST_CASE("reproducible with batch norm, dropout and moved images, on 2 threads a rank", "[run]") {
  if (test::skip_without(openmp_threads_at_most() >= 2, test::Lacks::setting,
                         "OMP_THREAD_LIMIT leaves a process one thread"))
    return;
  const test::Trial trial(kImages);
  std::filesystem::create_directories(trial / "train");
  test::write_shard(trial / "train/a.h5", 150, "a");
  test::write_shard(trial / "train/b.h5", 77, "b");
  const test::TrainedRun one = train_run(trial, "one", {{0}});
  check_same(train_run(trial, "two", {{2}}), one);
  check_same(train_run(trial, "four", {{4}}), one);
}

constexpr const char* kLetters = R"(name = "trial"
[data]
train = "letters"
order = "stream"
sequence_length = 8
[batch]
global = 16
[train]
steps = 20
reproducible = true
[exchange]
algorithm = "binomial"
[optimizer]
rule = "adam"
clip_norm = 1.0
[device]
kind = "onednn"
threads = 1
[[model.layers]]
type = "embedding"
units = 6
[[model.layers]]
type = "lstm"
units = 24
carry = true
[[model.layers]]
type = "dense"
units = 9
)";

TEST_CASE("reproducible with states carried from step to step, handed on from 2 ranks to 8 to 1", "[run]") {
  const test::Trial trial(kLetters);
  {
    std::ofstream file(trial / "letters.txt");
    for (int i = 0, state = 1; i < 4000; ++i, state = (5 * state + i % 7) % 17)
      file << static_cast<char>('a' + state / 2);
  }
  trial.make_data({"import", "text", "letters.txt", "--out", "letters"});
  const test::TrainedRun whole = train_run(trial, "whole", {{0}});
  check_same(train_run(trial, "changing", {{2, {"train.steps=7"}}, {8, {"train.steps=14"}}, {0}}), whole);
}

TEST_CASE("without train.reproducible, 1 and 2 ranks end with other bits", "[run][slow]") {
  const test::Trial trial;
  const test::TrainedRun one = train_run(trial, "one", {{0, {"train.steps=20"}}});
  const test::TrainedRun two = train_run(trial, "two", {{2, {"train.steps=20"}}});
  CHECK(one.summary()["weights_checksum"] != two.summary()["weights_checksum"]);
}

TEST_CASE("reproducible on 3 ranks, or on processors of unlike instruction sets, is refused", "[run]") {
  const test::Trial trial;
  const test::Outcome three = trial.train(3, kReproducible);
  INFO(three.out << three.err);
  CHECK(three.code == 2);
  CHECK_THAT(three.err, Catch::Contains("start 2 or 4 replicas"));

  // Only rank 1 is kept from the instructions that rank 0 may use.
  std::vector<std::string> words = trial.words(2, kReproducible);
  const auto program = std::find(words.begin(), words.end(), test::echelon_binary());
  REQUIRE(program != words.end());
  words.insert(program,
               {"sh", "-c",
                "[ ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}} = 1 ] && export DNNL_MAX_CPU_ISA=SSE41; exec \"$@\"", "sh"});
  const test::Outcome unlike = test::run_process({.argv = words, .cwd = trial / "", .env = {}, .limit_s = 60});
  INFO(unlike.out << unlike.err);
  CHECK(unlike.code == 3);
  CHECK_THAT(unlike.err,
             Catch::Contains("train.reproducible") && Catch::Contains("rank 1 has") && Catch::Contains("SSE4.1"));
}

}  // namespace
}  // namespace echelon
