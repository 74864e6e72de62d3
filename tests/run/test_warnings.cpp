// SPDX-License-Identifier: Apache-2.0
// The banner of `train` shows the warnings of `check`, word for word.
#include <catch2/catch.hpp>
#include <sstream>

#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Contains;

std::vector<std::string> warnings_of(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("warning: ")) all.push_back(line.substr(9));
  return all;
}

TEST_CASE("every warning of check is in the banner of train", "[run]") {
  struct Case {
    test::Sets sets;
    const char* named;
  };
  const test::Trial trial;
  for (const auto& [sets, named] : {
           Case{{"data.test=", "checkpoint.every_epochs=0"}, "no data.test"},
           Case{{"exchange.reduction=adasum"}, "adasum"},
           Case{{"batch.global=2", "model.zoo=",
                 "model.layers=[{type=\"flatten\"},{type=\"dense\",units=10},"
                 "{type=\"batch_norm\"}]"},
                "batch_norm has one sample"},
           Case{{"network.rate=1gbit"}, "slowed down"},
       }) {
    CAPTURE(named);
    const test::Sets all = test::with({"train.epochs=0", "train.steps=2"}, sets);
    const test::Outcome plan = trial.check(all, {"--replicas", "2"});
    INFO(plan.out << plan.err);
    REQUIRE(plan.code == 0);
    const std::vector<std::string> warnings = warnings_of(plan.out);
    CHECK_THAT(plan.out, Contains(named));
    CHECK(!warnings.empty());
    const test::Outcome run =
        trial.train(2, test::with(all, {std::string("name=") + std::to_string(sets.size()) + named[0]}));
    INFO(run.out << run.err);
    CHECK(run.code == 0);
    for (const std::string& warning : warnings) CHECK_THAT(run.out, Contains("warning   " + warning));
  }
}

}  // namespace
}  // namespace echelon
