// SPDX-License-Identifier: Apache-2.0
// Progress lines of long work: evaluations and imports. test_scale.cpp tests those of a study's cells.
#include <catch2/catch.hpp>

#include "base/atomic_file.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Contains;

TEST_CASE("an evaluation tells how far it is, in a run and by itself, and only when asked", "[run][progress]") {
  const test::Trial trial;
  const test::Sets often = {"train.steps=1", "device.kind=reference", "run.heartbeat_s=0.01", "evaluate.batch=1"};
  const test::Outcome run = trial.train(2, often);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, Contains("evaluation: ") && Contains(" of 101 batches, ") && Contains(" left"));
  const test::Outcome silent = trial.train(2, test::with(often, {"run.restart=never", "run.progress=none"}));
  CHECK(silent.code == 0);
  CHECK_THAT(silent.out, !Contains("evaluation: "));
  const test::Outcome bar = trial.train(2, test::with(often, {"run.restart=never", "run.progress=bar"}));
  CHECK(bar.code == 0);
  CHECK_THAT(bar.out, !Contains("evaluation: "));  // it ended within half a second
}

TEST_CASE("on a terminal a run draws a bar over itself, under mpirun too; elsewhere it does not", "[run][progress]") {
  for (const int ranks : {0, 2}) {
    const test::Trial trial;
    std::string command;
    for (const std::string& word : trial.words(
             ranks, {"train.epochs=0", "train.steps=15", "device.pace_ms=100", "data.test=", "run.progress=auto"}))
      command += (command.empty() ? "'" : " '") + word + "'";
    // `script` (util-linux) gives the command a terminal and passes on its output.
    const test::Outcome drawn = test::run_process(
        {.argv = {"script", "--quiet", "--return", "--command", command, "/dev/null"}, .cwd = trial / "."});
    INFO(ranks << " ranks: " << drawn.out << drawn.err);
    CHECK(drawn.code == 0);
    CHECK_THAT(drawn.out, Contains("\r\x1b[2K") && Contains("[#") && Contains("samples/s") && Contains("left"));
  }
  const test::Trial trial;
  const test::Outcome plain =
      trial.train(0, {"train.epochs=0", "train.steps=15", "device.pace_ms=100", "data.test=", "run.progress=auto"});
  CHECK(plain.code == 0);
  CHECK_THAT(plain.out, !Contains("\x1b"));
}

TEST_CASE("a long import tells how far it is", "[run][data][progress]") {
  const test::TempFolder folder;
  std::string table;
  for (int i = 0; i < 20'000; ++i) table += "1,2,3,4," + std::to_string(i % 2) + "\n";
  write_file_whole(folder / "table.csv", table);
  const auto import = [&](const char* out, const char* progress) {
    return test::run_echelon({"data", "import", "csv", folder / "table.csv", "--shape", "1,2,2", "--out", folder / out},
                             {.env = {{"ECHELON_RUN_HEARTBEAT_S", "0.001"}, {"ECHELON_RUN_PROGRESS", progress}}});
  };
  const test::Outcome told = import("out", "lines");
  INFO(told.out << told.err);
  REQUIRE(told.code == 0);
  CHECK_THAT(told.out, Contains("import, first look: ") && Contains(" of 20,000 samples, "));
  CHECK_THAT(import("silent", "none").out, !Contains("first look"));
}

}  // namespace
}  // namespace echelon
