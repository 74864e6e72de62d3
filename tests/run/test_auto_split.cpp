// SPDX-License-Identifier: Apache-2.0
// parallel.split = "auto" and parallel.costs = "measured" as a user runs them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;

// Reads "710.17 MiB" in the row that ends with "chosen", in MiB.
double predicted_mb(const std::string& out) {
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (!line.ends_with("chosen")) continue;
    std::vector<std::string> words;
    std::istringstream in(line);
    for (std::string word; in >> word;) words.push_back(word);
    const std::string& unit = words[words.size() - 2];
    return std::stod(words[words.size() - 3]) / (unit == "KiB" ? 1024 : unit == "MiB" ? 1 : 0);
  }
  return -1;
}

TEST_CASE("a model that does not fit a rank is split by itself, and holds what was predicted", "[run]") {
  const test::Trial trial;
  // Two replicas take 0.59 MiB each, two shards 0.41 MiB each.
  test::Sets sets = {"batch.global=8", "data.test=\"\"", "train.steps=4", "device.memory_limit_mb=0.5"};
  const test::Outcome whole = trial.train(2, sets);
  CHECK(whole.code == 6);
  CHECK_THAT(whole.err, Contains("memory limit reached"));
  sets.emplace_back("parallel.split=auto");
  const test::Outcome outcome = trial.train(2, sets);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("split     auto: ") && Contains("too large"));
  const nlohmann::json summary = trial.summary();
  CHECK(summary["mesh"]["data"] == 1);
  const auto peaks = summary["device_peak_mb"].get<std::vector<double>>();
  const double largest = *std::max_element(peaks.begin(), peaks.end());
  CHECK(largest <= 0.5);
  CHECK(largest == Approx(predicted_mb(outcome.out)).epsilon(0.1));
  sets[3] = "device.memory_limit_mb=0.1";
  const test::Outcome none = trial.train(2, sets);
  CHECK(none.code == 6);
  CHECK_THAT(none.err, Contains("no split needs less than device.memory_limit_mb = 0.1"));
}

TEST_CASE("stages by measured times", "[run]") {
  const test::Trial trial;
  const test::Sets sets = {"parallel.pipeline=2", "parallel.costs=measured", "batch.accumulation=2", "train.steps=3"};
  const test::Outcome outcome = trial.train(2, sets);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(trial.summary()["mesh"]["pipeline"] == 2);
}

TEST_CASE("parallel.split = auto excludes other splits", "[run]") {
  const test::Trial trial;
  const test::Outcome both = trial.train(2, {"parallel.split=auto", "parallel.tensor=2"});
  CHECK(both.code == 2);
  CHECK_THAT(both.err, Contains("parallel.tensor is not used here"));
}

}  // namespace
}  // namespace echelon
