// SPDX-License-Identifier: Apache-2.0
// echelon scale: the records of a study beside the runs of its cells: environments, rounds, outcomes, figures of verbs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "study/cell_record.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using nlohmann::json;

void add_study(const test::Trial& trial, const std::string& section) {
  write_file_whole(trial / "trial.toml", read_file_whole(trial / "trial.toml") + section);
}

std::vector<std::string> scale(const test::Sets& sets) {
  std::vector<std::string> words = {"scale", "trial.toml"};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  return words;
}

// Returns the records of the cells, by folder.
std::map<std::string, json> cells(const test::Trial& trial) {
  std::map<std::string, json> all;
  for (const auto& entry : fs::directory_iterator(trial / "results/trial"))
    if (fs::exists(entry.path() / "cell.json"))
      all[entry.path()] = json::parse(read_file_whole(entry.path() / "cell.json"));
  return all;
}

std::ptrdiff_t checkpoints_below(const std::string& folder) {
  return std::count_if(
      fs::recursive_directory_iterator(folder), fs::recursive_directory_iterator(), [](const auto& entry) {
        return entry.path().filename().string().starts_with("checkpoints") || entry.path().extension() == ".h5";
      });
}

constexpr const char* kRecorded = R"(
[study]
ranks = [1, 2]
repeats = 2
keep = "records"
[[study.variants]]
name = "ring"
set = ["exchange.algorithm=ring"]
[[study.variants]]
name = "tree"
set = ["exchange.algorithm=tree"]
[[study.variants]]
name = "too fast"
set = ["optimizer.learning_rate=900"]
[[study.environments]]
name = "alike"
[[study.environments]]
name = "one slow"
set = ["device.pace_factors=[3,1]"]
)";

TEST_CASE("a study's cells carry environment, round, seed and outcome, and leave no checkpoint where none is kept",
          "[run][study]") {
  const test::Trial trial;
  add_study(trial, kRecorded);
  const test::Outcome study =
      trial.echelon(scale({"train.epochs=0", "train.steps=24", "device.pace_ms=2", "checkpoint.every_steps=5"}), 2);
  INFO(study.out << study.err);
  REQUIRE(study.code == kExitOk);
  std::map<std::string, int> outcomes, environments;
  std::vector<std::string> settings;
  int controls = 0;
  for (const auto& [folder, cell] : cells(trial)) {
    ++outcomes[cell["outcome"]];
    ++environments[cell["environment"]];
    CHECK((cell["outcome"] == "diverged") == (cell["exit_code"] == 5));
    CHECK(cell["seed"].get<int>() == 6 + cell["round"].get<int>());  // the file has seed = 7
    if (!cell["control"].get<bool>()) continue;
    ++controls;
    CHECK(cell["setting"] == "one worker");
    CHECK(cell["environment"] == "alike");
  }
  // Each environment and round has one rank once for both all-reduces, two ranks for each, and a setting that diverges.
  CHECK(outcomes == std::map<std::string, int>{{"finished", 2 * 2 * 3}, {"diverged", 2 * 2 * 2}});
  CHECK(environments == std::map<std::string, int>{{"alike", 10}, {"one slow", 10}});
  CHECK(controls == 2);
  CHECK(checkpoints_below(trial / "results/trial") == 0);
  const json rounds = json::parse(read_file_whole(trial / "results/trial/rounds.json"));
  REQUIRE(rounds["rounds"].size() == 2);
  for (const json& round : rounds["rounds"]) CHECK(round["control_samples_per_s"].get<double>() > 0);
  CHECK_THAT(study.out, Contains("machine   "));
  const test::Outcome again =
      trial.echelon(scale({"train.epochs=0", "train.steps=24", "device.pace_ms=2", "checkpoint.every_steps=5"}), 2);
  CHECK_THAT(again.out, Contains("20 done before"));
}

// A batch of 7 cannot be split between two ranks. With one of 48, two ranks are 2.0, 0.4, 0.7 and 2.0 times as fast as
// one in the runs of these seeds, so that nothing is decided.
const test::Sets kUndecided = {"train.epochs=0",           "train.steps=2",
                               "checkpoint.every_steps=0", "device.pace_ms=-1",
                               "device.paced_gflops=8",    "device.paced_gb_per_s=1000",
                               "device.pace_spread=1",     "seed=27"};
std::string undecided(const std::string& more) {
  return "\n[study]\nranks = [1, 2]\nrepeats = \"until decided\"\nmax_repeats = 4\n" + more +
         "[study.axes]\n\"batch.global\" = [48, 7]\n";
}

TEST_CASE("rounds go on where the last cell of one cannot be run", "[run][study]") {
  // Any order of cells in a round will do; in the file's order each round ends with the cell that is left out.
  const test::Trial trial;
  add_study(trial, undecided("order = \"file\"\n"));
  const test::Outcome study = trial.echelon(scale(kUndecided), 2);
  INFO(study.out << study.err);
  CHECK_THAT(study.out, Contains("16/16"));
}

TEST_CASE("a study that is never decided runs its most rounds; --list tells why a cell cannot be run", "[run][study]") {
  const test::Trial trial;
  add_study(trial, undecided(""));
  const std::vector<std::string> words = scale(kUndecided);
  std::vector<std::string> list = words;
  list.emplace_back("--list");
  const test::Outcome listed = trial.echelon(list);
  INFO(listed.out << listed.err);
  CHECK_THAT(listed.out, Contains("cannot be run: k2_batch-global-7_r1") && Contains("nearest"));
  CHECK(listed.out.find("nearest") == listed.out.rfind("nearest"));  // once for all rounds
  const test::Outcome study = trial.echelon(words, 2);
  INFO(study.out << study.err);
  CHECK(study.code == kExitOk);
  CHECK_THAT(study.out, Contains("up to 4 rounds") && Contains("16/16"));
  CHECK(cells(trial).size() == 16);
}

TEST_CASE("an all-reduce is measured cell by cell, and its figures are the study's", "[run][study]") {
  const test::Trial trial;
  add_study(trial, R"(
[study]
ranks = [2]
repeats = 2
verb = "bench allreduce"
args = ["--iterations", "3", "--algorithms", "ring,tree"]
[study.axes]
"--sizes" = ["4KiB", "8KiB"]
)");
  const test::Outcome study = trial.echelon(scale({}), 2);
  INFO(study.out << study.err);
  REQUIRE(study.code == kExitOk);
  const auto all = cells(trial);
  CHECK(all.size() == 4);
  for (const auto& [folder, cell] : all) {
    const json figures = json::parse(read_file_whole(folder + "/figures.json"));
    const std::string bytes = cell["setting"] == "--sizes 4KiB" ? "4096" : "8192";
    CHECK(figures.size() == 12);
    for (const std::string algorithm : {"ring", "tree"}) {
      CHECK(figures.at(algorithm + "." + bytes + ".p50_s").get<double>() > 0);
      CHECK(figures.at(algorithm + "." + bytes + ".wire_bytes") == 2 * std::stod(bytes));  // 2(k-1)G
      CHECK(figures.at(algorithm + "." + bytes + ".steps") == 2);
    }
  }
  const std::string csv = read_file_whole(trial / "results/trial/study.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 4 * 12);
  CHECK_THAT(study.out, Contains("2 of 2") && Contains("ring.4096.p50_s"));
}

TEST_CASE("a supervised run with a fault is a cell, whose run goes on after it", "[run][study]") {
  const test::Trial trial;
  add_study(trial, R"(
[study]
ranks = [2]
verb = "supervise"
args = ["--restarts", "1"]
[[study.variants]]
name = "a rank is killed"
set = ["run.allow_faults=true", "checkpoint.every_steps=3", 'fault.inject=["kill rank 1 at step 8"]']
)");
  const test::Outcome study = trial.echelon(scale({"train.epochs=0", "train.steps=12"}), 2);
  INFO(study.out << study.err);
  REQUIRE(study.code == kExitOk);
  const auto all = cells(trial);
  REQUIRE(all.size() == 1);
  const json& cell = all.begin()->second;
  CHECK(cell["outcome"] == "finished");
  CHECK(fs::path(cell["attempt"].get<std::string>()).filename() == "02");  // it was started a second time
  CHECK(json::parse(read_file_whole(trial / (cell["attempt"].get<std::string>() + "/summary.json")))["steps"] == 12);
}

TEST_CASE("proposers are compared: each cell is a search of its own, with the best figure after each trial",
          "[run][study]") {
  const test::Trial trial;
  add_study(trial, R"(
[goal]
metric = "test_loss"
target = 0.01
[study]
ranks = [2]
trials = 3
keep = "records"
[study.axes]
"study.search" = ["grid", "random"]
"batch.global" = [16, 32, 48]
)");
  const std::vector<std::string> words = scale({"train.epochs=0", "train.steps=3", "checkpoint.every_steps=0"});
  const test::Outcome study = trial.echelon(words, 2);
  INFO(study.out << study.err);
  CHECK(study.code == kExitOk);
  const auto all = cells(trial);
  REQUIRE(all.size() == 2);
  for (const auto& [folder, cell] : all) {
    const json figures = json::parse(read_file_whole(folder + "/figures.json"));
    CHECK(figures["trials"] == 3);
    CHECK(figures["best"] == figures["best after 0003 trials"]);
    CHECK(figures["best after 0001 trials"] >= figures["best after 0003 trials"]);
    CHECK(cells(trial).at(folder)["outcome"] == "finished");
  }
  CHECK(checkpoints_below(trial / "results/trial") == 0);
  CHECK_THAT(trial.echelon(words, 2).out, Contains("2 done before"));
}

TEST_CASE("a share of the data is trained on as an axis, the same on one rank and on two", "[run][study]") {
  const test::Trial trial;
  add_study(trial, "\n[study]\nranks = [1, 2]\n[study.axes]\n\"data.fraction\" = [0.25, 1.0]\n");
  const test::Outcome study = trial.echelon(
      scale({"train.epochs=2", "data.sharding=record", "data.ragged=drop", "checkpoint.every_steps=0"}), 2);
  INFO(study.out << study.err);
  REQUIRE(study.code == kExitOk);
  std::map<std::string, std::vector<double>> losses;  // by share of the data, on one rank and on two
  for (const auto& [folder, cell] : cells(trial)) {
    const json run = json::parse(read_file_whole(trial / (cell["attempt"].get<std::string>() + "/summary.json")));
    const bool all = cell["setting"] == "data.fraction = 1.0";
    CHECK(run["steps"] == 2 * (all ? 800 / 48 : 200 / 48));
    losses[cell["setting"]].push_back(run["test_loss"]);
  }
  REQUIRE(losses.size() == 2);
  // k ranks take the same steps as one: only the order of sums differs.
  for (const auto& [share, pair] : losses) CHECK(pair.at(0) == Approx(pair.at(1)).epsilon(1e-4));
}

TEST_CASE("hosts of a cell that a launch does not have leave it out, with the reason", "[run][study]") {
  const test::Trial trial;
  add_study(trial, "\n[study]\nranks = [2]\n[study.axes]\n\"study.hosts\" = [1, 2]\n");
  const test::Outcome study = trial.echelon(scale({"train.epochs=0", "train.steps=2"}), 2);
  INFO(study.out << study.err);
  CHECK_THAT(study.out, Contains("left out: study.hosts = 2") && Contains("this launch has 1 host"));
  CHECK(study.code == kExitOk);
}

}  // namespace
}  // namespace echelon
