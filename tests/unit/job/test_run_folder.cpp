// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "job/run_folder.hpp"
#include "report/status.hpp"
#include "tests/support/process.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;

Config config_in(const test::TempFolder& folder) {
  Config config;
  config.name = "tried";
  config.run.results = folder / "results";
  return config;
}

TEST_CASE("attempts are numbered and never reuse a folder", "[train]") {
  const test::TempFolder folder;
  const Config config = config_in(folder);
  CHECK(attempts_of(run_path(config)).empty());
  const RunFolder first = make_attempt(config);
  const RunFolder second = make_attempt(config);
  CHECK(first.run == run_path(config));
  CHECK(first.attempt == first.run + "/01");
  CHECK(second.attempt == first.run + "/02");
  fs::create_directory(first.run + "/11");
  fs::create_directory(first.run + "/notes");
  fs::create_directory(first.run + "/99999999999");  // no attempt has such a number
  CHECK(make_attempt(config).attempt == first.run + "/12");
  CHECK(attempts_of(first.run).size() == 4);
  CHECK(fs::is_directory(first.checkpoints()));
}

TEST_CASE("a file in the way of the results is an environment error that names it", "[train]") {
  const test::TempFolder folder;
  std::ofstream(folder / "results") << "in the way";
  CHECK_THROWS_AS(make_attempt(config_in(folder)), EnvironmentError);
  CHECK_THROWS_WITH(make_attempt(config_in(folder)), Catch::Contains(folder / "results"));
}

TEST_CASE("an attempt that was killed without a word is marked as dead by the next", "[train]") {
  const test::TempFolder folder;
  const RunFolder first = make_attempt(config_in(folder)), second = make_attempt(config_in(folder));
  Status status;
  status.step = 12;
  write_running(first.attempt, status);
  write_running(second.attempt, status);
  conclude_died(second);
  CHECK(read_status(first.attempt)->state == "died");
  CHECK(!read_status(first.attempt)->exit_code);
  CHECK(read_status(first.attempt)->step == 12);
  CHECK(read_status(second.attempt)->state == "running");
}

TEST_CASE("rows beyond the checkpoint are cut from earlier attempts", "[train]") {
  const test::TempFolder folder;
  const Config config = config_in(folder);
  const RunFolder first = make_attempt(config);
  std::ofstream(first.attempt + "/metrics.jsonl") << R"({"type":"step","step":1}
{"type":"step","step":2}
{"type":"epoch","step":2}
{"type":"step","step":3}
{"type":"step","step":"x"}
[1]
{"type":"st)";
  const RunFolder second = make_attempt(config);
  std::ofstream(second.attempt + "/metrics.jsonl") << "{\"type\":\"step\",\"step\":9}\n";
  cut_metrics(second, 2);
  CHECK(read_file_whole(first.attempt + "/metrics.jsonl") == R"({"type":"step","step":1}
{"type":"step","step":2}
{"type":"epoch","step":2}
)");
  CHECK(read_file_whole(second.attempt + "/metrics.jsonl") == "{\"type\":\"step\",\"step\":9}\n");
}

TEST_CASE("rows that followed the checkpoint are cut, whatever their step, but those of checkpoints", "[train]") {
  const test::TempFolder folder;
  const Config config = config_in(folder);
  const std::string early = "{\"type\":\"step\",\"step\":1}\n", late = R"({"type":"step","step":2}
{"type":"checkpoint","step":2}
{"type":"epoch","step":2}
{"type":"checkpoint","step":3}
)",
                    figures = "{\"type\":\"checkpoint\",\"step\":2}\n";
  std::vector<RunFolder> attempts;
  for (int number = 1; number <= 3; ++number) {
    attempts.push_back(make_attempt(config));
    std::ofstream(attempts.back().attempt + "/metrics.jsonl") << early << late;
  }
  const auto rows = [&](int number) { return read_file_whole(attempts[number - 1].attempt + "/metrics.jsonl"); };
  const RunFolder last = make_attempt(config);
  cut_metrics(last, 2, 2, static_cast<std::int64_t>(early.size()));
  CHECK(rows(1) == early + late.substr(0, late.find("{\"type\":\"checkpoint\",\"step\":3}")));
  CHECK(rows(2) == early + figures);
  CHECK(rows(3) == figures);
  cut_metrics(last, 2, 2, static_cast<std::int64_t>(early.size()));  // the next attempt begins there
  CHECK(rows(2) == early + figures);
}

TEST_CASE("what a process killed after its verdict has left of a finished run is put right", "[train]") {
  const test::TempFolder folder;
  const RunFolder run = make_attempt(config_in(folder));
  Status status;
  write_running(run.attempt, status);
  const std::string running = read_file_whole(run.attempt + "/status.json");
  status.state = "finished", status.exit_code = 0;
  CHECK(conclude(run.attempt, status));
  const std::string finished = read_file_whole(run.attempt + "/status.json");
  std::ofstream(run.attempt + "/status.json", std::ios::trunc) << running;
  std::ofstream(run.attempt + "/status.json.tmp-77-0") << "half";
  {
    RunLock other, lock;
    other.take(run.run, "");
    tidy_finished(run, lock);  // the process may be writing
    CHECK(fs::exists(run.attempt + "/status.json.tmp-77-0"));
  }
  RunLock lock;
  tidy_finished(run, lock);
  CHECK(!fs::exists(run.attempt + "/status.json.tmp-77-0"));
  CHECK(read_file_whole(run.attempt + "/status.json") == finished);
}

TEST_CASE("the status of an attempt whose ranks were killed after its verdict is put right by the next", "[train]") {
  const test::TempFolder folder;
  const RunFolder first = make_attempt(config_in(folder)), second = make_attempt(config_in(folder));
  Status status;
  write_running(first.attempt, status);
  const std::string running = read_file_whole(first.attempt + "/status.json");
  status.state = "failed", status.exit_code = kExitLostRank;
  CHECK(conclude(first.attempt, status));
  std::ofstream(first.attempt + "/status.json", std::ios::trunc) << running;
  conclude_died(second);
  CHECK(read_file_whole(first.attempt + "/status.json") == read_file_whole(first.attempt + "/verdict.json"));
}

TEST_CASE("a verdict that a killed process has left incomplete is replaced by the next attempt", "[train]") {
  const test::TempFolder folder;
  const RunFolder first = make_attempt(config_in(folder)), second = make_attempt(config_in(folder));
  write_running(first.attempt, {});
  std::ofstream(first.attempt + "/verdict.json") << "{\"sta";
  conclude_died(second);
  CHECK(read_status(first.attempt)->state == "died");
  CHECK(read_file_whole(first.attempt + "/status.json") == read_file_whole(first.attempt + "/verdict.json"));
}

TEST_CASE("checkpoints are set aside, not removed, and leftovers go", "[train]") {
  const test::TempFolder folder;
  const Config config = config_in(folder);
  const RunFolder first = make_attempt(config);
  std::ofstream(first.checkpoints() + "/latest") << "step-00000001";
  std::ofstream(first.checkpoints() + "/step-00000002.h5.tmp-77-0") << "half";
  std::ofstream(first.attempt + "/status.json.tmp-77") << "half";
  const RunFolder second = make_attempt(config);
  remove_leftovers(second);
  CHECK(!fs::exists(first.checkpoints() + "/step-00000002.h5.tmp-77-0"));
  CHECK(!fs::exists(first.attempt + "/status.json.tmp-77"));
  set_checkpoints_aside(second);
  CHECK(fs::exists(first.run + "/checkpoints-before-02/latest"));
  CHECK(fs::is_empty(second.checkpoints()));
}

}  // namespace
}  // namespace echelon
