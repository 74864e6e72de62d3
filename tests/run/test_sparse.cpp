// SPDX-License-Identifier: Apache-2.0
// A ranking model with sparse embeddings, from import to training, as a user runs it.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "base/hash_rng.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

constexpr const char* kClicks = R"(name = "trial"
[model]
zoo = "ranking"
[data]
train = "train"
sharding = "record"
[batch]
global = 12
[train]
epochs = 2
[optimizer]
learning_rate = 0.5
momentum = 0
[device]
kind = "reference"
dtype = "f64"
)";

// Writes lines of 5 words out of 400; lines of class 1 have more words of the second half.
void write_clicks(const test::Trial& trial) {
  for (std::uint64_t label : {0, 1}) {
    std::ofstream file(trial / fmt::format("{}.txt", label));
    for (std::uint64_t line = 0; line < 60; ++line) {
      const HashRng draws = HashRng(label, "clicks").at(line);
      for (std::uint64_t i = 0; i < 5; ++i)
        file << "w" << (draws.below(2 * i, 4) == 0 ? 1 - label : label) * 200 + draws.below(2 * i + 1, 200) << " ";
      file << "\n";
    }
  }
  trial.make_data({"import", "sequences", ".", "--tokens", "words", "--out", "train"});
}

TEST_CASE("sparse embeddings: 2 ranks are 1, dense or not; few bytes travel, and those that the formula says",
          "[run]") {
  const test::Trial trial(kClicks);
  write_clicks(trial);
  const test::TrainedRun one = test::train_run(trial, "one", {{1}});
  const std::vector<test::TrainedRun> two = {
      test::train_run(trial, "rows", {{2, {"exchange.sparse_density=1"}, "touched rows of 2 tables"}}),
      test::train_run(trial, "whole", {{2, {"exchange.sparse_density=1e-6"}}}),
      test::train_run(trial, "dense", {{2, {"model.dense_embeddings=true"}}})};
  for (const test::TrainedRun& run : two) {
    check_equal(run, one, {.within = 1e-8});
    const nlohmann::json summary = run.summary();
    CHECK(summary["wire_bytes_per_step"].get<double>() ==
          Approx(summary["formula_bytes_per_step"].get<double>()).epsilon(1e-12));
  }
  CHECK(trial.summary("rows")["wire_bytes_per_step"] < trial.summary("dense")["wire_bytes_per_step"]);
}

TEST_CASE("check says what is sparse, and what has nothing to be lazy about is refused", "[run]") {
  const test::Trial trial(kClicks);
  write_clicks(trial);
  const test::Outcome plain = trial.check({}, {"--replicas", "2"});
  INFO(plain.out << plain.err);
  CHECK_THAT(plain.out, Contains("embedding1.weight: at most 30 of "));
  CHECK_THAT(plain.out,
             Contains("only these are updated; 1.17 KiB on the wire, whole "));  // 2 x 30 rows of 4 + 2 x 8 bytes
  CHECK_THAT(trial.check({"optimizer.momentum=0.9"}).out, Contains("the whole table is updated"));
  CHECK_THAT(trial.check({"optimizer.momentum=0.9", "optimizer.lazy=true"}).out, Contains("(lazy)"));
  const test::Outcome refused = trial.check({"optimizer.lazy=true", "model.dense_embeddings=true"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("this model has none"));
}

}  // namespace
}  // namespace echelon
