// train.reproducible as a user runs it: 1, 2 and 4 ranks leave the same weights and the same records, and a run goes on
// with another number of ranks to the same bits.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/run/trial.hpp"

namespace echelon {
namespace {

const test::Sets kReproducible = {"train.reproducible=true", "exchange.algorithm=butterfly", "train.steps=20",
                                  "optimizer.clip_norm=1.0", "evaluate.every_epochs=1"};

test::Sets with(test::Sets sets, const test::Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

// What must not depend on the number of ranks: every row of metrics.jsonl but for times, and the weights.
struct Trace {
  std::string weights;
  std::vector<double> steps, epochs;
  std::vector<double> checkpoint;
};

Trace trace_of(const test::Trial& trial) {
  Trace trace{trial.summary()["weights_checksum"].get<std::string>(), {}, {}, {}};
  for (const auto& row : trial.metrics()) {
    std::vector<double>& rows = row["type"] == "step" ? trace.steps : trace.epochs;
    for (const char* key : {"step", "epoch", "lr", "loss", "gradient_norm", "train_loss", "test_loss", "test_accuracy"})
      if (row.contains(key) && !row[key].is_null()) rows.push_back(row[key].get<double>());
  }
  for (const char* part : {"weights/", "optimiser/"}) {
    const auto values = test::checkpoint_values(trial.run() + "/checkpoints/step-00000020.h5", part);
    trace.checkpoint.insert(trace.checkpoint.end(), values.begin(), values.end());
  }
  return trace;
}

// How many differ, in bits but for the sign of 0.
std::size_t unlike(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::max(a.size(), b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

void check_same(const Trace& trace, const Trace& one) {
  CHECK(trace.weights == one.weights);
  CHECK(unlike(trace.steps, one.steps) == 0);
  CHECK(unlike(trace.checkpoint, one.checkpoint) == 0);
  CHECK(trace.steps.size() == 20 * 5);
  CHECK(trace.checkpoint.size() > 1000);
}

void run_training(const test::Trial& trial, int ranks, const test::Sets& sets) {
  const test::Outcome outcome = trial.train(ranks, sets);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
}

TEST_CASE("reproducible: split models have the same bits on any number of replicas", "[run]") {
  const test::Sets split = GENERATE(test::Sets{"parallel.pipeline=2"}, test::Sets{"parallel.tensor=2"});
  const test::Trial one, two;
  const test::Sets sets = with(kReproducible, with(split, {"batch.global=48", "train.micro_shards=4"}));
  for (const auto& [trial, ranks] : {std::pair{&one, 2}, {&two, 4}}) {
    const test::Outcome outcome = trial->train(ranks, sets);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
  }
  check_same(trace_of(two), trace_of(one));
}

TEST_CASE("reproducible: 1, 2 and 4 ranks end with the same weights, states, losses and accuracies", "[run]") {
  const test::Trial lone;
  run_training(lone, 0, kReproducible);
  const Trace one = trace_of(lone);
  for (const int ranks : {2, 4}) DYNAMIC_SECTION(ranks << " ranks") {
      const test::Trial trial;
      run_training(trial, ranks, kReproducible);
      const Trace trace = trace_of(trial);
      check_same(trace, one);
      CHECK(unlike(trace.epochs, one.epochs) == 0);
      CHECK(trace.epochs.size() == 2 * 5);
    }
}

TEST_CASE("every algorithm that reproducible takes, 8 ranks too", "[run][slow]") {
  const test::Trial lone;
  run_training(lone, 0, kReproducible);
  const Trace one = trace_of(lone);
  for (const std::string algorithm : {"butterfly", "halving_doubling", "binomial"}) DYNAMIC_SECTION(algorithm) {
      const test::Trial trial;
      run_training(trial, 8, with(kReproducible, {"exchange.algorithm=" + algorithm}));
      check_same(trace_of(trial), one);
    }
}

TEST_CASE("reproducible: begun on 2 ranks, taken up by 4 and by 1, the bits of an undisturbed run on 1", "[run]") {
  const test::Trial whole, changing;
  run_training(whole, 0, kReproducible);
  run_training(changing, 2, with(kReproducible, {"train.steps=7"}));
  run_training(changing, 4, with(kReproducible, {"train.steps=14"}));
  run_training(changing, 0, kReproducible);
  CHECK(changing.attempts() == 3);
  check_same(trace_of(changing), trace_of(whole));
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
  const auto trained = [](int ranks) {
    const test::Trial trial(kImages);
    std::filesystem::create_directories(trial / "train");
    test::write_shard(trial / "train/a.h5", 150, "a");
    test::write_shard(trial / "train/b.h5", 77, "b");
    run_training(trial, ranks, {});
    return trace_of(trial);
  };
  const Trace one = trained(0);
  for (const int ranks : {2, 4}) check_same(trained(ranks), one);
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
  const test::Trial whole(kLetters), changing(kLetters);
  for (const test::Trial* trial : {&whole, &changing}) {
    std::ofstream file(*trial / "letters.txt");
    for (int i = 0, state = 1; i < 4000; ++i, state = (5 * state + i % 7) % 17)
      file << static_cast<char>('a' + state / 2);
    file.close();
    const test::Outcome made = test::run_process(
        {.argv = {test::echelon_binary(), "data", "import", "text", "letters.txt", "--out", "letters"},
         .cwd = *trial / "",
         .env = {},
         .limit_s = 30});
    INFO(made.err);
    REQUIRE(made.code == 0);
  }
  run_training(whole, 0, {});
  run_training(changing, 2, {"train.steps=7"});
  run_training(changing, 8, {"train.steps=14"});
  run_training(changing, 0, {});
  check_same(trace_of(changing), trace_of(whole));
}

TEST_CASE("without reproducible the same runs part", "[run][slow]") {
  const test::Trial one, two;
  run_training(one, 0, {"train.steps=20"});
  run_training(two, 2, {"train.steps=20"});
  CHECK(one.summary()["weights_checksum"] != two.summary()["weights_checksum"]);
}

TEST_CASE("reproducible on 3 ranks, or on processors of unlike instruction sets, is refused", "[run]") {
  const test::Trial trial;
  const test::Outcome three = trial.train(3, kReproducible);
  INFO(three.out << three.err);
  CHECK(three.code == 2);
  CHECK_THAT(three.err, Catch::Contains("start 2 or 4 replicas"));

  // Rank 1 alone is kept from what rank 0 may use.
  std::vector<std::string> words = trial.words(2, kReproducible);
  const auto program = std::find(words.begin(), words.end(), test::echelon_binary());
  REQUIRE(program != words.end());
  words.insert(program,
               {"sh", "-c", "[ $OMPI_COMM_WORLD_RANK = 1 ] && export DNNL_MAX_CPU_ISA=SSE41; exec \"$@\"", "sh"});
  const test::Outcome unlike = test::run_process({.argv = words, .cwd = trial / "", .env = {}, .limit_s = 60});
  INFO(unlike.out << unlike.err);
  CHECK(unlike.code == 3);
  CHECK_THAT(unlike.err,
             Catch::Contains("train.reproducible") && Catch::Contains("rank 1 has") && Catch::Contains("SSE4.1"));
}

}  // namespace
}  // namespace echelon
