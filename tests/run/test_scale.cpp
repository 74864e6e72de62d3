// SPDX-License-Identifier: Apache-2.0
// echelon scale: a study from its file to its report, cell by cell.
#include <fmt/format.h>

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

constexpr const char* kStudy = R"(
[study]
ranks = [1, 2]
[[study.variants]]
name = "ring"
set = ["exchange.algorithm=ring"]
[[study.variants]]
name = "too fast"
set = ["optimizer.learning_rate=900", "train.epochs=3"]
[[study.variants]]
name = "odd batch"
set = ["batch.global=7", "train.epochs=0", "train.steps=5"]
)";

void add_study(const test::Trial& trial, const std::string& section) {
  write_file_whole(trial / "trial.toml", read_file_whole(trial / "trial.toml") + section);
}

// Returns the folder of the cell below results/trial whose name begins like this.
std::string cell(const test::Trial& trial, const std::string& begin) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(trial / "results/trial"))
    if (entry.path().filename().string().starts_with(begin)) found.push_back(entry.path());
  INFO(begin);
  REQUIRE(found.size() == 1);
  return found.front();
}

std::ptrdiff_t attempts_below(const std::string& folder) {
  return std::count_if(fs::recursive_directory_iterator(folder), fs::recursive_directory_iterator(),
                       [](const auto& entry) { return entry.path().filename() == "status.json"; });
}

const std::vector<std::string> kScale = {"scale",          "trial.toml", "--set",
                                         "train.epochs=1", "--set",      "checkpoint.every_steps=0"};

// Runs a launch that gets USR1 once `condition`, a shell command, holds. The signal goes to the launcher, which passes
// it on.
test::Outcome stopped_when(const test::Trial& trial, const std::vector<std::string>& words, int ranks,
                           const std::string& condition) {
  std::string shell;
  for (const std::string& word : test::mpirun(ranks, words).argv) shell += "'" + word + "' ";
  shell += "&\nfor i in $(seq 600); do\n  " + condition + R"( && break
  sleep 0.05
done
kill -USR1 $!
wait $!
code=$?
[ $code -gt 128 ] && { wait $!; code=$?; }
exit $code)";
  return test::run_process({.argv = {"bash", "-c", shell}, .cwd = trial / ".", .env = {}});
}

}  // namespace

TEST_CASE("a study runs each cell once, on its ranks, and keeps what cannot be run apart", "[run][study]") {
  const test::Trial trial;
  add_study(trial, kStudy);
  const test::Outcome study = trial.echelon(kScale, 3);
  INFO(study.out << study.err);
  REQUIRE(study.code == kExitOk);
  CHECK_THAT(study.out, Contains("6 cells, 1 to 2 ranks") && Contains("6/6"));
  for (const int ranks : {1, 2}) {
    const std::string k = "k" + std::to_string(ranks);
    const CellRecord ring = read_cell(cell(trial, k + "_ring"));
    CHECK(ring.state == CellState::finished);
    const auto summary = nlohmann::json::parse(read_file_whole(trial / (ring.attempt + "/summary.json")));
    CHECK(summary["ranks"] == ranks);
    CHECK(summary["provenance"]["hosts"].size() == static_cast<std::size_t>(ranks));
    CHECK(read_cell(cell(trial, k + "_too-fast")).state == CellState::diverged);
  }
  CHECK(read_cell(cell(trial, "k1_odd")).state == CellState::finished);
  const CellRecord odd = read_cell(cell(trial, "k2_odd"));
  CHECK(odd.state == CellState::left_out);
  CHECK_THAT(odd.reason, Contains("7") && Contains("nearest"));
  CHECK(fs::exists(trial / "results/trial/report.md"));
  for (const char* name : {"study.md", "study.html", "study.json", "study.csv"}) {
    CHECK_THAT(study.out, Contains(std::string("results/trial/") + name + "\n"));
    CHECK(fs::exists(trial / (std::string("results/trial/") + name)));
  }
  const auto evidence = nlohmann::json::parse(read_file_whole(trial / "results/trial/study.json"));
  REQUIRE(evidence["settings"].size() == 5);  // "ring" and "too fast" on 1 and 2 ranks, "odd batch" on 1
  for (const auto& setting : evidence["settings"]) {
    const auto& repetition = setting["repetitions"][0];
    const bool diverges = setting["label"] == "too fast";
    CHECK(repetition["outcome"] == (diverges ? "diverged" : "finished"));
    CHECK(repetition["code"] == (diverges ? 5 : 0));
    CHECK(repetition["samples_per_s"].is_number() == !diverges);
    if (!diverges) CHECK((repetition["curve"]["step"].size() == 1 && repetition["cpu_s"].get<double>() > 0));
    if (setting["label"] == "ring") CHECK(setting["wire"].is_null() == (setting["all_ranks"] == 1));
  }
  CHECK_THAT(study.out, Contains("too fast: 0 of 1 finished, 1 diverged."));
  const test::Outcome from_file = trial.echelon({"report", "results/trial/study.json", "--out", "again"});
  INFO(from_file.out << from_file.err);
  CHECK(from_file.code == kExitOk);
  CHECK(nlohmann::json::parse(read_file_whole(trial / "again/study.json")) == evidence);
  CHECK(fs::exists(trial / "again/study.html"));
  const std::ptrdiff_t attempts = attempts_below(trial / "results/trial");

  const test::Outcome again = trial.echelon(kScale, 2);
  CHECK(again.code == kExitOk);
  CHECK_THAT(again.out, Contains("6 done before") && !Contains("6/6"));
  CHECK(attempts_below(trial / "results/trial") == attempts);
}

TEST_CASE("a study whose goal is missed ends with code 8", "[run][study]") {
  const test::Trial trial;
  add_study(trial, "\n[study]\nranks = [1]\n");
  std::vector<std::string> words = {"scale", "trial.toml"};
  for (const char* set : {"train.epochs=0", "train.steps=3", "checkpoint.every_steps=0", "goal.deadline_h=1e-9"})
    words.insert(words.end(), {"--set", set});
  const test::Outcome study = trial.echelon(words);
  INFO(study.out << study.err);
  CHECK(study.code == kExitUnmet);
  CHECK_THAT(study.out, Contains("MISSED: 1 rank: "));
  words.push_back("--report");
  CHECK(trial.echelon(words).code == kExitUnmet);
}

TEST_CASE("a study that is stopped by a signal saves the cell under way and goes on where it was", "[run][study]") {
  const test::Trial trial;
  add_study(trial, "\n[study]\nranks = [1, 2]\nrepeats = 2\norder = \"file\"\n");
  const std::vector<std::string> scale = {"scale",          "trial.toml", "--set",
                                          "train.epochs=1", "--set",      "device.pace_ms=100"};
  const test::Outcome stopped =
      stopped_when(trial, scale, 2, "grep -qs '\"type\":\"step\"' results/trial/k1_r2-*/run-*/01/metrics.jsonl");
  INFO(stopped.out << stopped.err);
  CHECK(stopped.code == kExitRequeue);
  CHECK_THAT(stopped.out, Contains("2 cells left: run the same command again to continue"));
  const std::string third = cell(trial, "k1_r2");
  CHECK(read_cell(third).state == CellState::waiting);
  CHECK(read_cell(third).deaths == 0);

  const test::Outcome rest = trial.echelon(scale, 2);
  INFO(rest.out << rest.err);
  CHECK(rest.code == kExitOk);
  CHECK_THAT(rest.out, Contains("2 done before") && Contains("4/4"));
  CHECK(read_cell(third).state == CellState::finished);
  CHECK(attempts_below(third) == 2);  // resumed, not started again
}

TEST_CASE("a study that does not fit its launch is refused once, with the remedy", "[run][study]") {
  const test::Trial trial;
  add_study(trial, "\n[study]\nranks = [1, 4]\n");
  const test::Outcome small = trial.echelon(kScale, 2);
  INFO(small.out << small.err);
  CHECK(small.code == kExitConfig);
  CHECK_THAT(small.err, Contains("mpirun -n 4") && Contains("--ranks"));
  CHECK(small.err.find("up to 4 ranks") == small.err.rfind("up to 4 ranks"));
  std::vector<std::string> sizes = kScale;
  sizes.insert(sizes.end(), {"--ranks", "1"});
  CHECK(trial.echelon(sizes, 2).code == kExitOk);
  sizes.back() = "3";
  CHECK_THAT(trial.echelon(sizes, 2).err, Contains("--ranks 3: is not a size of the study"));
}

TEST_CASE("a search tries what it proposes, goes on for more trials, and tells what mattered", "[run][study]") {
  const test::Trial trial;
  add_study(trial, R"(
[goal]
metric = "test_loss"
target = 0.01
[study]
ranks = [2]
search = "bayesian"
trials = 8
[study.ranges]
"optimizer.learning_rate" = { low = 1e-3, high = 0.3, log = true }
[study.axes]
"batch.global" = [48, 7]
)");
  const test::Outcome first = trial.echelon(kScale, 3);
  INFO(first.out << first.err);
  CHECK(first.code == kExitUnmet);  // no trial reaches the goal
  CHECK_THAT(first.out, Contains("8/8") && Contains("Best trials") && Contains("What mattered") &&
                            Contains("left out: "));  // an odd batch on two ranks
  CHECK(fs::exists(trial / "results/trial/study.md"));
  const std::string csv = read_file_whole(trial / "results/trial/study.csv");
  CHECK_THAT(csv,
             Catch::StartsWith("trial,test_loss,epochs,state,seconds,optimizer.learning_rate,batch.global,folder\n"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 9);
  const std::ptrdiff_t attempts = attempts_below(trial / "results/trial");
  write_file_whole(trial / "trial.toml", [&] {
    std::string text = read_file_whole(trial / "trial.toml");
    return text.replace(text.find("trials = 8"), 10, "trials = 9");
  }());
  const test::Outcome more = trial.echelon(kScale, 2);
  INFO(more.out << more.err);
  CHECK_THAT(more.out, Contains("8 done before") && Contains("9/9"));
  CHECK(attempts_below(trial / "results/trial") - attempts <= 1);
}

TEST_CASE("a search stops hopeless trials early, side by side as one after another", "[run][study]") {
  const std::string study = R"(
[goal]
metric = "test_loss"
target = 0.01
[study]
ranks = [1]
search = "random"
trials = 6
side_by_side = SIDE
halving = { eta = 2, first_epochs = 1 }
[study.ranges]
"optimizer.learning_rate" = { low = 1e-3, high = 0.3, log = true }
)";
  const std::vector<std::string> scale = {"scale",          "trial.toml", "--set",
                                          "train.epochs=4", "--set",      "optimizer.schedule=cosine"};
  std::string tables[2];
  for (const int side : {1, 3}) {
    const test::Trial trial;
    std::string text = study;
    add_study(trial, text.replace(text.find("SIDE"), 4, std::to_string(side)));
    const test::Outcome run = trial.echelon(scale, 3);
    INFO(run.out << run.err);
    CHECK(run.code == kExitUnmet);  // no trial reaches the goal
    CHECK_THAT(run.out, Contains("6 trials, 1 finished; stopped early: 3 after 1 epoch, 2 after 2 epochs") &&
                            Contains("11 epochs trained, 24 without halving"));
    std::ptrdiff_t epochs = 0;
    for (const auto& entry : fs::recursive_directory_iterator(trial / "results/trial")) {
      if (entry.path().filename() != "metrics.jsonl") continue;
      const std::string rows = read_file_whole(entry.path());
      for (std::size_t at = rows.find("\"type\":\"epoch\""); at != std::string::npos;
           at = rows.find("\"type\":\"epoch\"", at + 1))
        ++epochs;
    }
    CHECK(epochs == 11);  // nothing is trained twice
    for (const auto& entry : fs::directory_iterator(trial / "results/trial"))
      if (fs::exists(entry.path() / "cell.json"))
        for (const RungFigure& rung : read_cell(entry.path()).rungs)
          tables[side / 3] += fmt::format("{} {} {}\n", entry.path().filename().string(), rung.epochs, rung.figure);
    if (side == 1) continue;
    const std::ptrdiff_t attempts = attempts_below(trial / "results/trial");
    CHECK(trial.echelon(scale, 3).code == kExitUnmet);
    CHECK(attempts_below(trial / "results/trial") == attempts);
    CHECK_THAT(trial.echelon(scale, 2).err, Contains("study.side_by_side = 3"));
  }
  const auto sorted = [](const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream all(text);
    for (std::string line; std::getline(all, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  CHECK(sorted(tables[0]) == sorted(tables[1]));
}

TEST_CASE("a trial that goes on ends with the weights of one that was never stopped", "[run][study]") {
  const test::Trial trial;
  add_study(trial, R"(
[goal]
metric = "test_loss"
target = 0.01
[study]
ranks = [2]
search = "grid"
halving = { eta = 2, first_epochs = 1 }
[study.axes]
"optimizer.learning_rate" = [0.05]
)");
  const std::vector<std::string> sets = {"optimizer.schedule=cosine", "train.epochs=4"};
  const test::Outcome search = trial.echelon({"scale", "trial.toml", "--set", sets[0], "--set", sets[1]}, 2);
  INFO(search.out << search.err);
  const CellRecord record = read_cell(cell(trial, "k2_"));
  CHECK(record.rungs.size() == 3);
  CHECK(fs::path(record.attempt).filename() == "03");  // one run, resumed twice
  const auto stopped = nlohmann::json::parse(read_file_whole(trial / (record.attempt + "/summary.json")));
  CHECK(trial.train(2, test::with(sets, {"optimizer.learning_rate=0.05", "name=whole"})).code == kExitUnmet);
  CHECK(trial.summary("whole")["weights_checksum"] == stopped["weights_checksum"]);
}

TEST_CASE("trials side by side: one that diverges ends alone, and a signal stops all", "[run][study]") {
  const test::Trial trial;
  add_study(trial, R"(
[goal]
metric = "test_loss"
target = 0.01
[study]
ranks = [1]
search = "bayesian"
trials = 9
[study.axes]
"optimizer.learning_rate" = [0.01, 0.1, 900.0]
"optimizer.momentum" = [0.0, 0.5, 0.9]
)");
  const std::vector<std::string> scale = {"scale",          "trial.toml", "--set",
                                          "train.epochs=2", "--set",      "device.pace_ms=30"};
  const test::Outcome stopped = stopped_when(
      trial, scale, 3, "[ $(grep -ls '\"type\":\"step\"' results/trial/k1_*/run-*/01/metrics.jsonl | wc -l) -ge 3 ]");
  INFO(stopped.out << stopped.err);
  CHECK(stopped.code == kExitRequeue);
  CHECK_THAT(stopped.out, Contains("left: run the same command again to continue"));
  const test::Outcome rest = trial.echelon(scale, 3);
  INFO(rest.out << rest.err);
  CHECK(rest.code == kExitUnmet);  // no trial reaches the goal
  CHECK_THAT(rest.out, Contains("9/9") && Contains("diverged: ") && Contains("Best trials"));
  for (const auto& entry : fs::directory_iterator(trial / "results/trial"))
    if (fs::exists(entry.path() / "cell.json")) CHECK(read_cell(entry.path()).over());
}

TEST_CASE("a study measures its network first where asked, stores it, and tells of the cell that runs",
          "[run][study][network]") {
  const test::Trial trial;
  const bool by_key = GENERATE(true, false);
  add_study(trial, std::string("\n[study]\nranks = [2]\n") + (by_key ? "network = true\n" : ""));
  std::vector<std::string> words = kScale;
  words.insert(words.end(), {"--set", "run.heartbeat_s=0.05", "--set", "train.epochs=6"});
  if (!by_key) words.emplace_back("--network");
  const test::Outcome study = trial.echelon(words, 3);
  INFO(study.out << study.err);
  REQUIRE(study.code == kExitOk);
  CHECK(study.out.find("network   3 ranks on 1 host") < study.out.find("1 cell,"));
  CHECK_THAT(study.out, Contains("step ") && Contains(" of 102, running for "));
  const auto links = nlohmann::json::parse(read_file_whole(trial / "results/trial/network_k3.json"));
  CHECK(links["format"] == "echelon-network");
  CHECK(links["hosts"].size() == 3);
  CHECK_THAT(read_file_whole(trial / "results/trial/network_k3.svg"), Contains("<svg"));
  CHECK_THAT(read_file_whole(trial / "results/trial/network_k3.txt"), Contains("inside"));
  CHECK_THAT(read_file_whole(trial / "results/trial/study.md"),
             Contains("## The network") && Contains("3 ranks on 1 host") && Contains("](network_k3.svg)"));
  CHECK(trial.echelon({"scale", "trial.toml", "--network", "--list"}).code == kExitConfig);
}

TEST_CASE("train and check skip [study]", "[run][study]") {
  const test::Trial trial;
  add_study(trial, kStudy);
  CHECK(trial.check().code == kExitOk);
  CHECK(trial.train(0, {"train.steps=2", "train.epochs=0"}).code == kExitOk);
}

}  // namespace echelon
