// SPDX-License-Identifier: Apache-2.0
// Converted records are read back by the programs for which they are made, where those are installed: TensorBoard, the
// compliance checker of MLPerf, and pandas (Python packages tensorboard, mlperf-logging, pandas).
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/trial.hpp"
#include "tests/support/python.hpp"
#include "tests/support/skip.hpp"

namespace echelon {
namespace {

using test::has_module;
using test::python;

constexpr const char* kReadEvents = R"(
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
)";

// Adds what mllog.hpp leaves to the submitter, with the name of one of MLPerf's benchmarks.
constexpr const char* kComplete = R"(
import json, sys
rows = [json.loads(line.split(":::MLLOG ", 1)[1]) for line in open(sys.argv[1])]
def point(key, value):
    return dict(rows[0], key=key, value=value)
for row in rows:
    if row["key"] == "submission_benchmark": row["value"] = "bert"
more = [point("submission_org", "a"), point("submission_platform", "b"), point("submission_status", "research"),
        point("cache_clear", True), point("train_samples", 800), point("eval_samples", 201)]
rows = [row for row in rows[:2] + more + rows[2:] if row["key"] not in sys.argv[3:]]
open(sys.argv[2], "w").writelines(":::MLLOG " + json.dumps(row) + "\n" for row in rows)
)";

}  // namespace

TEST_CASE("TensorBoard reads every number of every row back", "[run][report][convert]") {
  if (test::skip_without(has_module("tensorboard"), test::Lacks::package, "needs the Python package tensorboard"))
    return;
  const test::Trial trial;
  REQUIRE(trial.train(2, {"train.epochs=2"}).code == kExitOk);
  REQUIRE(trial.echelon({"report", "results", "--tensorboard", "events"}).code == kExitOk);
  std::string folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(trial / "events"))
    if (entry.is_regular_file()) folder = entry.path().parent_path();
  const test::Outcome read = python({"-c", kReadEvents, folder});
  INFO(read.err);
  REQUIRE(read.code == 0);
  const auto tags = nlohmann::json::parse(read.out);

  std::map<std::string, std::vector<std::pair<std::int64_t, double>>> expected;
  for (const auto& row : trial.metrics()) {
    const std::string type = row["type"];
    for (const auto& [key, value] : row.items())
      if (value.is_number() && key != "step" && key != "epoch")
        expected[type + "/" + key].emplace_back(row["step"], value);
    if (row.contains("time"))
      for (const auto& [part, value] : row["time"].items()) expected["time/" + part].emplace_back(row["step"], value);
  }
  CHECK(expected.at("step/loss").size() == 34);
  CHECK(expected.at("epoch/test_accuracy").size() == 2);
  for (const auto& [tag, values] : expected) {
    INFO(tag);
    REQUIRE(tags.contains(tag));
    REQUIRE(tags[tag].size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      CHECK(tags[tag][i][0] == values[i].first);
      CHECK(tags[tag][i][1].get<double>() == Approx(values[i].second).epsilon(1e-6));  // stored as f32
    }
  }
}

TEST_CASE("pandas reads metrics.jsonl in one line, as the page says", "[run][report][convert]") {
  if (test::skip_without(has_module("pandas"), test::Lacks::package, "needs the Python package pandas")) return;
  const test::Trial trial;
  REQUIRE(trial.train(2, {"train.epochs=2"}).code == kExitOk);
  const test::Outcome read = python({"-c", R"(
import json, pandas, sys
steps = pandas.read_json(sys.argv[1], lines=True).query("type == 'step'")
flat = pandas.json_normalize([json.loads(row) for row in open(sys.argv[1])])
print(len(steps), float(steps["loss"].iloc[-1]), int(flat["time.forward"].count()))
)",
                                     trial.attempt() + "/metrics.jsonl"});
  INFO(read.out << read.err);
  REQUIRE(read.code == 0);
  std::ptrdiff_t rows = 0;
  double loss = 0;
  for (const auto& row : trial.metrics())
    if (row["type"] == "step") ++rows, loss = row["loss"];
  std::istringstream words(read.out);
  std::ptrdiff_t steps = 0, forward = 0;
  double last = 0;
  words >> steps >> last >> forward;
  CHECK(rows == 34);
  CHECK(steps == rows);
  CHECK(forward == rows);
  CHECK(last == Approx(loss));
}

TEST_CASE("MLPerf's checker takes the lines with what the submitter adds, and no less", "[run][report][convert]") {
  if (test::skip_without(has_module("mlperf_logging"), test::Lacks::package, "needs the Python package mlperf-logging"))
    return;
  const test::Trial trial;
  REQUIRE(trial.train(0, {"train.epochs=2"}).code == kExitOk);
  REQUIRE(trial.echelon({"report", "results", "--mllog", "mllog"}).code == kExitOk);
  const auto verdict = [&](const std::vector<std::string>& without) {
    std::vector<std::string> words = {"-c", kComplete, trial / "mllog/result_0.txt", trial / "full.txt"};
    words.insert(words.end(), without.begin(), without.end());
    REQUIRE(python(words).code == 0);
    const test::Outcome checked = python({"-m", "mlperf_logging.compliance_checker", "--usage", "training", "--ruleset",
                                          "4.0.0", "--log_output", trial / "checker.log", trial / "full.txt"});
    return checked.out + checked.err;
  };
  CHECK_THAT(verdict({}), Catch::Contains("SUCCESS"));
  for (const char* key : {"run_stop", "epoch_stop", "eval_accuracy", "submission_division"})
    CHECK_THAT(verdict({key}), !Catch::Contains("SUCCESS"));
}

}  // namespace echelon
