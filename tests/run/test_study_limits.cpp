// SPDX-License-Identifier: Apache-2.0
// echelon scale: the budget of a study, ranks that wait for cells of others, and weak scaling.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "study/cell_record.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

void write_study(const test::Trial& trial, const std::string& section) {
  static constexpr const char* kBegin = "\n[study]\n";
  std::string config = read_file_whole(trial / "trial.toml");
  config.erase(std::min(config.find(kBegin), config.size()));
  write_file_whole(trial / "trial.toml", config + kBegin + section);
}

std::vector<std::string> scale(const test::Sets& sets) {
  std::vector<std::string> words = {"scale", "trial.toml", "--set", "checkpoint.every_steps=0"};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  return words;
}

std::vector<CellRecord> cells(const test::Trial& trial) {
  std::vector<CellRecord> all;
  for (const auto& entry : fs::directory_iterator(trial / "results/trial"))
    if (fs::exists(entry.path() / "cell.json")) all.push_back(read_cell(entry.path()));
  return all;
}

std::ptrdiff_t finished(const test::Trial& trial) {
  const std::vector<CellRecord> all = cells(trial);
  return std::count_if(all.begin(), all.end(), [](const CellRecord& c) { return c.state == CellState::finished; });
}

}  // namespace

TEST_CASE("no cell of a study begins beyond its budget, and a larger one goes on", "[run][study]") {
  const test::Trial trial;
  write_study(trial, "ranks = [1]\nrepeats = 3\nbudget_hours = 1e-9\n");
  const std::vector<std::string> words = scale({"train.epochs=1"});
  const test::Outcome little = trial.echelon(words);
  INFO(little.out << little.err);
  CHECK(little.code == kExitOk);
  CHECK_THAT(little.out, Contains("2 cells left: raise study.budget_hours to run them"));
  CHECK(finished(trial) == 1);

  write_study(trial, "ranks = [1]\nrepeats = 3\nbudget_hours = 1\n");
  const test::Outcome more = trial.echelon(words);
  INFO(more.out << more.err);
  CHECK(more.code == kExitOk);
  CHECK_THAT(more.out, Contains("1 done before") && !Contains("left: a larger"));
  CHECK(finished(trial) == 3);
}

TEST_CASE("rates of a study's cells leave out its warm-up, and the budget names where all time went", "[run][study]") {
  const test::Trial trial;
  write_study(trial, "ranks = [1, 2]\nwarmup_steps = 3\n");
  const test::Outcome study = trial.echelon(scale({"train.epochs=0", "train.steps=16", "device.pace_ms=20"}), 2);
  INFO(study.out << study.err);
  REQUIRE(study.code == kExitOk);
  CHECK(finished(trial) == 2);
  for (const CellRecord& cell : cells(trial)) {
    const auto summary = nlohmann::json::parse(read_file_whole(trial / (cell.attempt + "/summary.json")));
    CHECK(summary.value("steps", 0) == 16);
    CHECK(summary.value("timed_steps", 0) == 13);
    CHECK(summary.value("warmup_steps", 0) == 2);  // the third step is in the sums
    CHECK(summary.value("warmup_s", 0.0) > 0);
  }
  CHECK_THAT(read_file_whole(trial / "results/trial/study.md"),
             Contains("The first 3") && Contains("of each run are its warm-up"));
  const auto evidence = nlohmann::json::parse(read_file_whole(trial / "results/trial/study.json"));
  REQUIRE(evidence["settings"].size() == 2);
  for (const auto& setting : evidence["settings"]) {
    INFO(setting["loss_budget"].dump());
    double sum = 0;
    for (const auto& [part, share] : setting["loss_budget"].items()) sum += share.get<double>();
    CHECK(sum == Approx(1).margin(0.01));
    CHECK(setting["loss_budget"].value("other", 1.0) <= 0.03);
    CHECK(setting["loss_budget"].value("start_up", 0.0) > 0.1);  // two of 16 steps
  }

  write_study(trial,
              "ranks = [1]\nwarmup_steps = 3\n[[study.variants]]\nname = \"short\"\nset = [\"train.steps=3\"]\n");
  const test::Outcome none = trial.echelon(scale({"train.epochs=0"}));
  INFO(none.out << none.err);
  CHECK_THAT(none.err, Contains("study.warmup_steps = 3 leaves none of the 3 steps of this cell to measure"));
}

TEST_CASE("a study in weak mode trains as many samples a rank on every number of ranks", "[run][study]") {
  const test::Trial trial;
  write_study(trial, "ranks = [1, 2]\nmode = \"weak\"\n");
  const test::Outcome study = trial.echelon(scale({"train.epochs=0", "train.steps=6"}), 2);
  INFO(study.out << study.err);
  REQUIRE(study.code == kExitOk);
  CHECK(finished(trial) == 2);
  for (const CellRecord& cell : cells(trial)) {
    const auto summary = nlohmann::json::parse(read_file_whole(trial / (cell.attempt + "/summary.json")));
    CHECK(summary.value("global_batch", 0) == 48 * summary.value("ranks", -1));
  }
}

TEST_CASE("the memory of a cell is foretold, listed, and keeps a cell out that has none", "[run][study]") {
  const test::Trial trial;
  write_study(trial, R"(ranks = [1]
[[study.variants]]
name = "small"
set = ["batch.global=16"]
[[study.variants]]
name = "large"
set = ["batch.global=400"]
)");
  const test::Outcome list = trial.echelon({"scale", "trial.toml", "--list"});
  INFO(list.out << list.err);
  CHECK(list.code == kExitOk);
  CHECK_THAT(list.out, Contains("memory of a rank") && Contains("MiB"));
  const test::Outcome study = trial.echelon(scale({"train.epochs=1", "device.memory_limit_mb=8"}), 1);
  INFO(study.out << study.err);
  CHECK(study.code == kExitOk);
  for (const CellRecord& cell : cells(trial)) {
    if (cell.state == CellState::left_out)
      CHECK_THAT(cell.reason, Contains("memory"));
    else
      CHECK(cell.memory_bytes > 1e6);
  }
  CHECK(finished(trial) == 1);
}

TEST_CASE("ranks that have no part in a cell sleep", "[run][study][speed]") {
  const test::Trial trial;
  write_study(trial, "ranks = [1]\n");
  std::string shell;
  for (const std::string& word : test::mpirun(2, scale({"train.epochs=1", "device.pace_ms=250"})).argv)
    shell += "'" + word + "' ";
  const test::Outcome study = test::run_process(
      {.argv = {"bash", "-c", "TIMEFORMAT='cpu %U %S wall %R'; time " + shell}, .cwd = trial / ".", .env = {}});
  INFO(study.out << study.err);
  REQUIRE(study.code == kExitOk);
  const auto at = study.err.rfind("cpu ");
  REQUIRE(at != std::string::npos);
  double user_s = 0, system_s = 0, wall_s = 0;
  std::string word;
  std::istringstream(study.err.substr(at)) >> word >> user_s >> system_s >> word >> wall_s;
  CHECK(wall_s > 4);                        // 17 steps of 250 ms
  CHECK(user_s + system_s < 0.6 * wall_s);  // two ranks and the launcher; a rank that polled would use all of the time
}

}  // namespace echelon
