// SPDX-License-Identifier: Apache-2.0
// eval --follow: evaluations beside a run give the same figures as those inside it.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {
namespace {

using Catch::Contains;
using nlohmann::json;

std::map<int, json> rows_by_step(const std::string& path) {
  std::map<int, json> rows;
  std::istringstream lines(read_file_whole(path));
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);
    rows[row["step"]] = row;
  }
  return rows;
}

constexpr const char* kMetrics = R"(evaluate.metrics=["top5_accuracy", "macro_f1"])";
const char* const kFigures[] = {"test_loss", "test_accuracy", "test_top5_accuracy", "test_macro_f1"};

}  // namespace

TEST_CASE("evaluations aside, in line and distributed have equal figures", "[run][follow][slow]") {
  const Trial trial;
  const Sets sets = {kMetrics, "checkpoint.every_steps=0", "checkpoint.keep=10", "evaluate.batch=32"};
  std::map<std::string, std::vector<json>> epochs;
  for (const char* by : {"all", "first"}) {
    const Outcome outcome = trial.train(2, with(sets, {fmt::format("name={}", by), fmt::format("evaluate.by={}", by)}));
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    for (const json& row : trial.metrics(by))
      if (row["type"] == "epoch") epochs[by].push_back(row);
  }
  REQUIRE(epochs["all"].size() == 3);

  // It follows a run that is still training, paced so that there is something to follow.
  const std::string follow =
      "mpirun -n 2 --oversubscribe --bind-to none \"$ECHELON_BINARY\" eval results/aside --follow --every 0.1 "
      "--patience 30 --threads 1 > follow.txt 2>&1";
  const Outcome both = trial.train_and(2, with(sets, {"name=aside", "evaluate.by=aside", "device.pace_ms=5"}),
                                       follow + "; code=$?; wait $pid; exit $code", 90);
  INFO(both.out << both.err << read_file_whole(trial / "follow.txt"));
  REQUIRE(both.code == kExitOk);
  const std::map<int, json> aside = rows_by_step(trial.run("aside") + "/evaluation.jsonl");
  REQUIRE(aside.size() == 3);
  std::size_t epoch = 0;
  for (const auto& [step, row] : aside) {
    CAPTURE(step);
    CHECK(row["epoch"] == epochs["all"][epoch]["epoch"]);
    for (const char* figure : kFigures) {
      CHECK(epochs["first"][epoch][figure] == epochs["all"][epoch][figure]);
      CHECK(row[figure] == epochs["all"][epoch][figure]);
    }
    ++epoch;
  }
  for (const json& row : trial.metrics("aside"))
    if (row["type"] == "epoch") CHECK(row["test_loss"].is_null());

  // One process alone finds the same figures; a second follower has nothing left to do; the report includes them.
  std::filesystem::remove(trial.run("aside") + "/evaluation.jsonl");
  REQUIRE(trial.echelon({"eval", "results/aside", "--follow", "--every", "0.05", "--threads", "1"}).code == kExitOk);
  const std::map<int, json> alone = rows_by_step(trial.run("aside") + "/evaluation.jsonl");
  for (const auto& [step, row] : aside)
    for (const char* figure : kFigures) CHECK(alone.at(step)[figure] == row[figure]);
  const Outcome report = trial.echelon({"report", "results/aside", "--out", "reports", "--name", "aside"});
  REQUIRE(report.code == kExitOk);
  CHECK_THAT(read_file_whole(trial / "reports/aside.json"),
             Contains(aside.rbegin()->second["test_accuracy"].dump().substr(0, 8)));
  const Outcome again = trial.echelon({"eval", "results/aside", "--follow", "--every", "0.05"});
  CHECK(again.code == kExitOk);
  CHECK(again.out.empty());
}

TEST_CASE("a follower of a run that removes checkpoints while they are read ends with 0 when the run ends",
          "[run][follow]") {
  const Trial trial;
  const Sets sets = {
      "evaluate.by=aside", "checkpoint.every_steps=1", "checkpoint.every_epochs=0",    "checkpoint.keep=1",
      "train.epochs=20",   "evaluate.batch=1",         "checkpoint.asynchronous=false"};
  const Outcome both = trial.train_and(
      0, sets,
      "\"$ECHELON_BINARY\" eval results/trial --follow --every 0.01 --patience 30 --threads 1 > follow.txt 2>&1; "
      "echo follower $?; wait $pid; echo run $?",
      60);
  const std::string said = read_file_whole(trial / "follow.txt");
  INFO(both.out << both.err << said);
  CHECK_THAT(both.out, Contains("follower 0\n") && Contains("run 0\n"));
  const std::map<int, json> rows = rows_by_step(trial.run() + "/evaluation.jsonl");
  CHECK(rows.size() >= 2);             // one was evaluated while it was removed, or left out
  CHECK(rows.rbegin()->first == 340);  // the last is not
  CHECK(rows.size() < 340);
}

// The manifest of the newest checkpoint becomes a pipe while the run is stopped, so that the follower, which has listed
// the checkpoint, waits in reading it until the run has written the next checkpoint and removed this one.
TEST_CASE("a checkpoint that the run removes between its listing and its opening is passed over", "[run][follow]") {
  const Trial trial;
  const Sets sets = {"evaluate.by=aside", "checkpoint.every_steps=2",      "checkpoint.every_epochs=0",
                     "checkpoint.keep=1", "checkpoint.asynchronous=false", "train.epochs=5",
                     "device.pace_ms=10"};
  const Outcome both = trial.train_and(0, sets, R"sh(
reached 4; kill -STOP $pid
# The run must be stopped in training: then the folder holds one manifest, one file, and nothing that is being written.
until [ "$(cd results/trial/run-*/checkpoints; echo step-* | sed 's/[0-9]//g')" = "step-.h step-.json" ]; do
  kill -CONT $pid; sleep 0.01; kill -STOP $pid
done
manifest=$(ls $PWD/results/trial/run-*/checkpoints/step-*.json | tail -1)
cp $manifest saved; rm $manifest; mkfifo $manifest
"$ECHELON_BINARY" eval results/trial --follow --every 0.01 --patience 30 --threads 1 > follow.txt 2>&1 &
follower=$!
exec 3> $manifest # returns once the follower has opened it
kill -CONT $pid
for i in $(seq 3000); do [ -e $manifest ] || [ -e ${manifest%json}h5 ] || break; sleep 0.01; done
echo removed $(basename ${manifest%.json}); cat saved >&3; exec 3>&-
wait $follower; echo follower $?; wait $pid; echo run $?)sh",
                                       60);
  const std::string said = read_file_whole(trial / "follow.txt");
  INFO(both.out << both.err << said);
  CHECK_THAT(both.out, Contains("follower 0\n") && Contains("run 0\n"));
  const std::size_t at = both.out.find("removed step-");
  REQUIRE(at != std::string::npos);
  const std::string step = both.out.substr(at + 8, 13);
  CHECK_THAT(said, Contains(step + ".h5: removed by the run before it was read"));
  const std::map<int, json> rows = rows_by_step(trial.run() + "/evaluation.jsonl");
  CHECK(!rows.contains(std::stoi(step.substr(5))));
  CHECK(rows.rbegin()->first == 85);
}

TEST_CASE("a follower waits for a run no longer than it is told, and data are needed without it", "[run][follow]") {
  const Trial trial;
  const Outcome none = trial.echelon({"eval", "results/none", "--follow", "--every", "0.05", "--patience", "0.3"});
  CHECK(none.code == kExitEnvironment);
  CHECK_THAT(none.err, Contains("results/none: has no run yet"));
  const Outcome data = trial.echelon({"eval", "results/none"});
  CHECK(data.code == kExitConfig);
  CHECK_THAT(data.err, Contains("results/none: does not exist"));
  const Outcome goal = trial.check({"evaluate.by=aside", "goal.metric=test_accuracy", "goal.target=0.5"});
  CHECK(goal.code == kExitConfig);
  CHECK_THAT(goal.err, Contains("evaluate.by = \"aside\" leaves evaluations to another job"));
}

}  // namespace echelon::test
