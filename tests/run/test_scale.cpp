// echelon scale: a study from its file to its report, cell by cell.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

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

// The folder of the cell whose name begins so, below results/trial.
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
  const std::ptrdiff_t attempts = attempts_below(trial / "results/trial");

  const test::Outcome again = trial.echelon(kScale, 2);
  CHECK(again.code == kExitOk);
  CHECK_THAT(again.out, Contains("6 done before") && !Contains("6/6"));
  CHECK(attempts_below(trial / "results/trial") == attempts);
}

TEST_CASE("a cell with which its job ended goes on once, and is given up the second time", "[run][study]") {
  const test::Trial trial;
  add_study(trial, "\n[study]\nranks = [1]\n[study.axes]\n\"batch.global\" = [48, 96]\n");
  std::vector<std::string> list = kScale;
  list.emplace_back("--list");
  CHECK_THAT(trial.echelon(list).out, Contains("batch.global = 48") && Contains("waiting"));
  const test::Outcome whole = trial.echelon(kScale, 2);
  INFO(whole.out << whole.err);
  REQUIRE(whole.code == kExitOk);
  const std::string once = cell(trial, "k1_batch-global-48"), twice = cell(trial, "k1_batch-global-96");
  CellRecord killed;
  killed.state = CellState::running;
  killed.tries = 1;
  write_cell(once, killed);
  killed.tries = 2;
  write_cell(twice, killed);
  const test::Outcome again = trial.echelon(kScale, 2);
  INFO(again.out << again.err);
  CHECK(again.code == kExitUnmet);
  CHECK(read_cell(once).state == CellState::finished);
  CHECK(read_cell(once).tries == 2);
  CHECK(read_cell(twice).state == CellState::failed);
  CHECK_THAT(again.out, Contains("its job ended with it 2 times"));
}

TEST_CASE("a study that is stopped by a signal saves the cell under way and goes on where it was", "[run][study]") {
  const test::Trial trial;
  add_study(trial, "\n[study]\nranks = [1, 2]\nrepeats = 2\n");
  const std::vector<std::string> scale = {"scale",          "trial.toml", "--set",
                                          "train.epochs=1", "--set",      "device.pace_ms=100"};
  std::string shell;  // the signal goes to the launcher, which passes it on, while the third cell trains
  for (const std::string& word : test::mpirun(2, scale).argv) shell += "'" + word + "' ";
  shell += R"(&
for i in $(seq 600); do
  grep -qs '"type":"step"' results/trial/k1_r2-*/run-*/01/metrics.jsonl && break
  sleep 0.05
done
kill -USR1 $!
wait $!
code=$?
[ $code -gt 128 ] && { wait $!; code=$?; }
exit $code)";
  const test::Outcome stopped = test::run_process({.argv = {"bash", "-c", shell}, .cwd = trial / ".", .env = {}});
  INFO(stopped.out << stopped.err);
  CHECK(stopped.code == kExitRequeue);
  CHECK_THAT(stopped.out, Contains("2 cells left: the same command goes on"));
  const std::string third = cell(trial, "k1_r2");
  CHECK(read_cell(third).state == CellState::waiting);
  CHECK(read_cell(third).tries == 0);

  const test::Outcome rest = trial.echelon(scale, 2);
  INFO(rest.out << rest.err);
  CHECK(rest.code == kExitOk);
  CHECK_THAT(rest.out, Contains("2 done before") && Contains("4/4"));
  CHECK(read_cell(third).state == CellState::finished);
  CHECK(attempts_below(third) == 2);  // resumed, not begun anew
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
  CHECK_THAT(trial.echelon(sizes, 2).err, Contains("--ranks 3: not a size of the study"));
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

TEST_CASE("train and check skip [study]", "[run][study]") {
  const test::Trial trial;
  add_study(trial, kStudy);
  CHECK(trial.check().code == kExitOk);
  CHECK(trial.train(0, {"train.steps=2", "train.epochs=0"}).code == kExitOk);
}

}  // namespace echelon
