#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/support/process.hpp"
#include "train/run_folder.hpp"

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

TEST_CASE("status.json comes back as it was written", "[train]") {
  const test::TempFolder folder;
  const RunFolder attempt = make_attempt(config_in(folder));
  CHECK(!read_status(attempt.attempt));
  Provenance provenance;
  provenance.hosts = {"a", "b"};
  write_status(attempt, {"stopped", 75, "asked \"to\" stop", 12, "checkpoints/step-00000012.h5"}, provenance);
  const auto status = read_status(attempt.attempt);
  REQUIRE(status);
  CHECK(status->state == "stopped");
  CHECK(status->exit_code == 75);
  CHECK(status->reason == "asked \"to\" stop");
  CHECK(status->step == 12);
  CHECK(status->checkpoint == "checkpoints/step-00000012.h5");
  std::ofstream(attempt.attempt + "/status.json") << "{\"state\": \"fini";
  CHECK(!read_status(attempt.attempt));
}

TEST_CASE("rows beyond the checkpoint are cut from earlier attempts", "[train]") {
  const test::TempFolder folder;
  const Config config = config_in(folder);
  const RunFolder first = make_attempt(config);
  std::ofstream(first.attempt + "/metrics.jsonl") << R"({"type":"step","step":1}
{"type":"step","step":2}
{"type":"epoch","step":2}
{"type":"step","step":3}
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
