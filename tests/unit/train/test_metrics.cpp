// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/metrics.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/atomic_file.hpp"
#include "tests/support/process.hpp"

namespace echelon {
namespace {

using nlohmann::json;

std::vector<json> rows_in(const std::string& path) {
  std::vector<json> rows;
  std::istringstream lines(read_file_whole(path));
  for (std::string line; std::getline(lines, line);) rows.push_back(json::parse(line));
  return rows;
}

// A step as the loop shows it to hooks: until step_end its times exclude hooks.
StepRecord step(std::int64_t number) {
  StepRecord record;
  record.step = record.own_step = number;
  record.loss = 1;
  record.times.total_s = record.times.forward_s = 2;
  return record;
}

void finish(MetricsHook& hook, StepRecord& record, double hooks_s) {
  record.times.hooks_s = hooks_s;
  record.times.total_s += hooks_s;
  hook.step_recorded(record);
}

}  // namespace

TEST_CASE("rows up to a checkpoint are in the file before it is, each once", "[train][metrics]") {
  const test::TempFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsHook hook(path, 1);
  for (int number = 1; number <= 15; ++number) {
    StepRecord record = step(number);
    hook.step_end(record);
    finish(hook, record, 0);
  }
  StepRecord last = step(16);
  hook.step_end(last);
  EpochRecord epoch;
  epoch.epoch = 1, epoch.step = 16;
  hook.epoch_end(epoch);
  const std::int64_t bytes = hook.settle();  // a kill after this loses nothing up to step 16
  CHECK(bytes == static_cast<std::int64_t>(std::filesystem::file_size(path)));
  std::vector<json> rows = rows_in(path);
  REQUIRE(rows.size() == 17);
  for (int i = 0; i < 16; ++i) CHECK(rows[static_cast<std::size_t>(i)]["step"] == i + 1);
  CHECK(rows[16]["type"] == "epoch");
  finish(hook, last, 0.5);
  StepRecord after = step(17);
  hook.step_end(after);
  finish(hook, after, 0.25);
  hook.run_end(true);
  rows = rows_in(path);
  REQUIRE(rows.size() == 18);
  // The checkpoint's own time comes too late for its step's row, so the next row counts it.
  CHECK(rows[15]["time"]["hooks"] == 0);
  CHECK(rows[17]["time"]["hooks"] == 0.75);
  CHECK(rows[17]["time"]["total"] == 2.75);
  CHECK(rows[17]["samples_per_s"] == rows[15]["samples_per_s"]);
}

TEST_CASE("an attempt that makes no step writes no epoch a second time", "[train][metrics]") {
  const test::TempFolder folder;
  MetricsHook hook(folder / "metrics.jsonl", 1);
  EpochRecord epoch;
  hook.epoch_end(epoch);
  hook.run_end(true);
  CHECK(read_file_whole(folder / "metrics.jsonl").empty());
}

TEST_CASE("an attempt that attends the last meeting of a trained run writes no epoch a second time",
          "[train][metrics]") {
  const bool others_trained = GENERATE(false, true);
  const test::TempFolder folder;
  MetricsHook hook(folder / "metrics.jsonl", 1);
  hook.run_begin(16);
  StepRecord meeting = step(others_trained ? 17 : 16);
  meeting.trained = false, meeting.loss = std::nan("");
  hook.step_end(meeting);
  EpochRecord epoch;
  SECTION("with no step of any replica since the checkpoint") {
    hook.epoch_end(epoch);
    hook.run_end(true);
    CHECK(read_file_whole(folder / "metrics.jsonl").empty() == !others_trained);
  }
  SECTION("with steps before the checkpoint of which no epoch was written") {
    epoch.train_loss = 1;
    hook.epoch_end(epoch);
    hook.run_end(true);
    CHECK(rows_in(folder / "metrics.jsonl").size() == 1);
  }
}

}  // namespace echelon
