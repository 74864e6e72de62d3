// SPDX-License-Identifier: Apache-2.0
// Ranks that compute at a set pace, as a user runs them: there are more ranks than cores, each with its own time.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "report/figures.hpp"
#include "tests/run/compare.hpp"

namespace echelon {

using Catch::Contains;
using test::check_equal;
using test::train_run;

TEST_CASE("paced ranks take their paces and learn what others do", "[run]") {
  const test::Trial trial;
  const test::Sets sets = {"train.epochs=1", "run.restart=never"};
  const test::TrainedRun plain = train_run(trial, "plain", {{4}}, sets);
  const test::TrainedRun paced =
      train_run(trial, "paced", {{4}}, test::with(sets, {"device.pace_ms=15", "device.pace_factors=[1, 3]"}));
  INFO(paced.out);
  check_equal(paced, plain, {.part = "", .evaluation = true});
  const nlohmann::json summary = paced.summary();
  const std::vector<double> pace_s = summary["pace_s"];
  REQUIRE(pace_s.size() == 4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const double expected_s = rank == 1 ? 0.045 : 0.015;
    CHECK(pace_s[rank] == Approx(expected_s));
    std::vector<double> compute_s;
    for (const nlohmann::json& row : trial.metrics("paced"))
      if (row.contains("ranks_before")) compute_s.push_back(row["ranks_before"]["compute"][rank]);
    REQUIRE(compute_s.size() >= 10);
    CHECK(median(compute_s) == Approx(expected_s).epsilon(0.1));
  }
  CHECK(summary["step_s"]["median"].get<double>() > 0.044);  // pace of the slowest rank; the exchange adds to it
  CHECK(summary["paced"] == false);
  CHECK_THAT(paced.out, Contains("forward and backward of a step take 15.00 ms, times device.pace_factors by rank") &&
                            Contains("pace: 15.00 ms a step of forward and backward on rank 0, 45.00 ms"));
  CHECK_FALSE(plain.summary().contains("pace_s"));
}

TEST_CASE("a pace that ops exceed is told with the ranks and their steps", "[run]") {
  const test::Trial trial;
  const test::Outcome late = trial.train(2, {"train.steps=12", "train.epochs=0", "device.pace_ms=0.01"});
  INFO(late.out << late.err);
  REQUIRE(late.code == kExitOk);
  CHECK_THAT(late.out + late.err, Contains("longer than their pace") && Contains("rank 1: "));
  const std::vector<double> over = trial.summary()["pace_over_steps"], worst = trial.summary()["pace_worst"];
  CHECK(over == std::vector<double>{12, 12});
  CHECK(worst[0] > 1.05);
}

TEST_CASE("one config with a pace for each rank serves fewer ranks, too", "[run]") {
  const test::Trial trial;
  const test::Outcome fewer =
      trial.train(2, {"train.steps=3", "train.epochs=0", "device.pace_ms=5", "device.pace_factors=[1, 2, 3]"});
  INFO(fewer.out << fewer.err);
  REQUIRE(fewer.code == kExitOk);
  CHECK_THAT(fewer.out, Contains("device.pace_factors has 3 entries: the first 2 are read, one for each rank"));
  const std::vector<double> pace_s = trial.summary()["pace_s"];
  CHECK(pace_s[1] == Approx(2 * pace_s[0]));
}

}  // namespace echelon
