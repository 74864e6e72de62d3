// SPDX-License-Identifier: Apache-2.0
// Studies whose launches die with a cell: the guilty cell is given up, and the others are not.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "study/cell_record.hpp"
#include "study/deaths.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

constexpr const char* kSideBySide = R"(
[study]
ranks = [1]
order = "file"
side_by_side = 2
[study.axes]
"batch.global" = [48, 64, 80]
)";

class Study {
 public:
  explicit Study(const std::string& section, int epochs = 1) : epochs_(epochs) {
    write_file_whole(trial_ / "trial.toml", read_file_whole(trial_ / "trial.toml") + section);
  }

  CellRecord cell(int batch) const { return read_cell(folder(batch)); }
  test::Outcome run(int ranks, bool at_checkpoint = false) const { return trial_.echelon(words(at_checkpoint), ranks); }
  enum class Whom { cell, all };
  // Runs a launch and kills, with SIGKILL, the cell of this batch or all cells at once, when it and `others` more cells
  // have begun to train, or have a checkpoint.
  test::Outcome killed(int ranks, int batch, int others = 0, Whom whom = Whom::cell, bool at_checkpoint = false) const {
    std::string shell = "touch mark; mkdir -p results; sleep 0.1\n";
    for (const std::string& word : test::mpirun(ranks, words(at_checkpoint)).argv) shell += "'" + word + "' ";
    shell += fmt::format(R"(&
pids() {{
  find results -path "$1" -name lock -newer mark -exec cat {{}} + | sed -n 's/.*"pid":\([0-9]*\).*/\1/p' | sort -u
}}
for i in $(seq 300); do
  busy=$(find results -path '*/run-*/*' -name {1} -newer mark | cut -d/ -f3 | sort -u | wc -l)  # cells
  own=$(find results -path '*/k1_batch-global-{0}_*/run-*' -name {1} -newer mark)
  [ -n "$own" ] && [ "$busy" -gt {2} ] && break
  sleep 0.05
done
kill -KILL $(pids '{3}')
wait $!
)",
                         batch, at_checkpoint ? "latest" : "metrics.jsonl", others,
                         whom == Whom::all ? "*" : fmt::format("*/k1_batch-global-{}_*", batch));
    return test::run_process({.argv = {"bash", "-c", shell}, .cwd = trial_ / ".", .env = {}});
  }

 private:
  // --set values are part of a cell's identity.
  std::vector<std::string> words(bool at_checkpoint) const {
    return {"scale", "trial.toml",
            "--set", fmt::format("train.epochs={}", epochs_),
            "--set", "device.pace_ms=150",
            "--set", at_checkpoint ? "checkpoint.every_steps=2" : "checkpoint.every_steps=0"};
  }
  std::string folder(int batch) const {
    for (const auto& entry : fs::directory_iterator(trial_ / "results/trial"))
      if (entry.path().filename().string().starts_with(fmt::format("k1_batch-global-{}_", batch))) return entry.path();
    return "";
  }
  const int epochs_;
  test::Trial trial_;
};

TEST_CASE("a cell that twice takes its launch with it is given up, and the others are run", "[run][study][slow]") {
  const Study study("\n[study]\nranks = [1]\norder = \"file\"\n[study.axes]\n\"batch.global\" = [48, 64]\n");
  for (const int deaths : {0, 1}) {
    const test::Outcome killed = study.killed(2, 48);
    INFO(killed.out << killed.err);
    CHECK(killed.code != kExitOk);
    CHECK(study.cell(48).state == CellState::running);
    CHECK(study.cell(48).deaths == deaths);
  }
  const test::Outcome rest = study.run(2);
  INFO(rest.out << rest.err);
  CHECK(rest.code == kExitUnmet);
  CHECK_THAT(rest.out, Contains("failed: its job ended 2 times while the cell ran") && Contains("2/2"));
  CHECK(study.cell(48).state == CellState::failed);
  CHECK(study.cell(64).state == CellState::finished);
  CHECK(study.cell(64).deaths == 0);
  CHECK_THAT(study.run(2).out, Contains("2 done before"));
}

TEST_CASE("of cells side by side, which one takes its launch with it is found by running them in turns",
          "[run][study][slow]") {
  const Study study(kSideBySide);
  const test::Outcome both = study.killed(2, 48, 1, Study::Whom::all);
  INFO(both.out << both.err);
  CHECK(study.cell(64).state == CellState::running);
  const test::Outcome again = study.killed(2, 48, 1, Study::Whom::all);
  INFO(again.out << again.err);
  CHECK(study.cell(64).state == CellState::waiting);  // it is held back
  CHECK(study.cell(64).deaths == 1);
  CHECK(study.cell(80).state == CellState::running);
  const test::Outcome rest = study.run(2);
  INFO(rest.out << rest.err);
  CHECK(rest.code == kExitUnmet);
  CHECK(study.cell(48).state == CellState::failed);
  CHECK(study.cell(64).state == CellState::finished);
  CHECK(study.cell(80).state == CellState::finished);
}

TEST_CASE("a cell that the launcher stops because another one was killed is not blamed", "[run][study][slow]") {
  // With two epochs, the cell that was killed too is still at work when the other one is killed again.
  const Study study(kSideBySide, 2);
  for (const int deaths : {0, 1}) {
    const test::Outcome killed = study.killed(2, 48, 1);
    INFO(killed.out << killed.err);
    CHECK(study.cell(48).deaths == deaths);
    CHECK(study.cell(64).deaths == 0);
  }
  const test::Outcome rest = study.run(2);
  INFO(rest.out << rest.err);
  CHECK(study.cell(48).state == CellState::failed);
  CHECK(study.cell(64).state == CellState::finished);
}

TEST_CASE("launches that die with a cell which has a new checkpoint each time do not count", "[run][study][slow]") {
  const Study study("\n[study]\nranks = [1]\norder = \"file\"\n[study.axes]\n\"batch.global\" = [48]\n");
  for (int death = 0; death <= kMostDeaths; ++death) {
    const test::Outcome killed = study.killed(1, 48, 0, Study::Whom::cell, true);
    INFO(killed.out << killed.err);
    REQUIRE(killed.code != kExitOk);
    CHECK(study.cell(48).state == CellState::running);
    CHECK(study.cell(48).deaths == 0);
  }
  CHECK(study.run(1, true).code == kExitOk);
}

}  // namespace
}  // namespace echelon
