// SPDX-License-Identifier: Apache-2.0
// data.stage as a user runs it: shards are read from a host's own disk.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using test::train_run;

}  // namespace

TEST_CASE("copies of shards on a host's disk give the same weights, and serve the next run", "[run][data]") {
  const std::string sharding = GENERATE(as<std::string>(), "file", "record");
  const test::Trial trial;
  const test::TempFolder disk;
  const test::Sets plain = {"data.sharding=" + sharding, "train.steps=6"};
  const test::Sets staged = test::with(plain, {"data.stage=" + disk.path()});
  const test::TrainedRun in_place = train_run(trial, "in_place", {{2}}, plain);
  const test::TrainedRun first = train_run(trial, "first", {{2}}, staged);
  const test::TrainedRun again = train_run(trial, "again", {{2}}, staged);
  INFO(first.out << again.out);
  CHECK_THAT(first.out, Contains("copied, 0 used again, on 1 host"));
  CHECK_THAT(again.out, Contains("staged    0 files (0 B) copied, "));
  CHECK(first.values("weights") == in_place.values("weights"));
  CHECK(again.values("weights") == in_place.values("weights"));
}

TEST_CASE("shards for which there is no room are read where they are", "[run][data]") {
  const test::Trial trial;
  const test::TempFolder disk;
  const test::Outcome refused = trial.train(2, {"train.steps=3", "data.stage=/proc/none"});
  CHECK(refused.code == kExitEnvironment);
  CHECK_THAT(refused.err, Contains("/proc/none"));
  const test::Outcome run = trial.train(2, {"train.steps=3", "data.stage=" + disk.path(), "data.stage_limit_gb=2e-9"});
  INFO(run.out);
  CHECK(run.code == kExitOk);
  CHECK_THAT(run.err, Contains("did not fit into"));
}

}  // namespace echelon
