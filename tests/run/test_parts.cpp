// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a split model, of which each rank writes its part: lost ranks, full disks, flipped bits, and readers.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "checkpoint/weights_file.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using test::Outcome;
using test::Sets;
using test::Trial;
using test::with;

const Sets kSplit = {"parallel.pipeline=2",      "train.epochs=0",    "train.steps=24",
                     "checkpoint.every_steps=8", "checkpoint.keep=2", "checkpoint.every_epochs=0",
                     "evaluate.every_epochs=0"};

std::set<std::string> files_of_step(const Trial& trial, int step) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(trial.run() + "/checkpoints"))
    if (const std::string name = entry.path().filename().string(); name.starts_with(fmt::format("step-{:08}", step)))
      names.insert(name.substr(13));
  return names;
}

const std::set<std::string> kWhole = {".h5", ".json", ".part-0000.h5", ".part-0001.h5"};

}  // namespace

TEST_CASE("parts of a checkpoint that are not whole are never taken, and the run goes on from the one before",
          "[run][checkpoints]") {
  struct Line {
    std::string fault;
    int code;  // exit code of the run with the fault; -1: the launcher's
    std::vector<std::string> says = {};
  };
  const Sets waited = with(kSplit, {"checkpoint.asynchronous=false"});  // so step 8's is whole when a fault comes
  const Trial plain;
  REQUIRE(plain.train(2, waited).code == kExitOk);
  CHECK(files_of_step(plain, 24) == kWhole);
  CHECK(files_of_step(plain, 16) == kWhole);
  CHECK(files_of_step(plain, 8).empty());
  for (const Line& line :
       std::vector<Line>{{"disk full after 10KB on rank 1 at step 9",
                          kExitEnvironment,
                          {"rank 1: ", "step-00000016.part-0001.h5", "No space left on device"}},
                         {"disk full after 10KB at step 9", kExitEnvironment, {"No space left on device"}},
                         {"kill rank 1 at step 16 in checkpoint", -1, {"was lost"}},
                         {"flip checkpoint bit at step 16", kExitOk}}) {
    const Trial trial;
    const bool flips = line.fault.starts_with("flip");
    Sets sets = with(waited, {"run.allow_faults=true", "fault.inject=[\"" + line.fault + "\"]"});
    if (flips) sets = with(sets, {"train.steps=16"});
    const Outcome outcome = trial.train(2, sets);
    INFO(line.fault << "\n" << outcome.out << outcome.err);
    CHECK((line.code < 0 ? outcome.code != kExitOk : outcome.code == line.code));
    for (const std::string& text : line.says) CHECK_THAT(outcome.err + outcome.out, Contains(text));
    CHECK(files_of_step(trial, 8) == kWhole);
    if (!flips) CHECK(!files_of_step(trial, 16).contains(".json"));
    const Outcome resumed = trial.train(2, waited);
    INFO(resumed.out << resumed.err);
    CHECK(resumed.code == kExitOk);
    CHECK_THAT(resumed.out, Contains("from step 8:"));
    if (flips) CHECK_THAT(resumed.err, Contains("step-00000016 is damaged and was skipped"));
    CHECK(test::last_values(trial, "") == test::last_values(plain, ""));
    CHECK(files_of_step(trial, 16) == kWhole);
    CHECK(trial.leftovers().empty());
  }
}

TEST_CASE("readers of a checkpoint in parts see whole tensors", "[run][checkpoints]") {
  const Trial trial;
  const Sets sets = with(kSplit, {"evaluate.every_steps=8", "checkpoint.keep_best=test_loss"});
  const Outcome split = trial.train(2, sets);
  INFO(split.out << split.err);
  REQUIRE(split.code == kExitOk);
  std::string figures;
  for (const auto& row : trial.all_metrics())
    if (row["type"] != "step" && row["type"] != "checkpoint" && row["step"] == 24)
      figures = fmt::format("accuracy {:.2f} %", 100 * row["test_accuracy"].get<double>());
  REQUIRE(!figures.empty());
  for (const char* from : {"", "/checkpoints/latest", "/checkpoints/best", "/checkpoints/step-00000024.h5"}) {
    const Outcome eval = trial.echelon({"eval", trial.run() + from, "test"});
    INFO(from << "\n" << eval.out << eval.err);
    CHECK(eval.code == kExitOk);
    if (from != std::string("/checkpoints/best")) CHECK_THAT(eval.out, Contains(figures));
  }
  CHECK(trial.echelon({"eval", trial.run(), "--follow", "--every", "0.05"}).code == kExitOk);
  std::istringstream lines(read_file_whole(trial.run() + "/evaluation.jsonl"));
  std::set<int> steps;
  for (std::string line; std::getline(lines, line);) steps.insert(nlohmann::json::parse(line)["step"].get<int>());
  CHECK((steps.contains(16) && steps.contains(24)));
  const Outcome part = trial.echelon({"eval", trial.run() + "/checkpoints/step-00000024.part-0000.h5", "test"});
  CHECK(part.code == kExitConfig);
  CHECK_THAT(part.err, Contains("give step-00000024.h5"));

  const Outcome taken = trial.train(0, {"name=taken", "run.resume_from=" + trial.run(), "train.steps=25"});
  INFO(taken.out << taken.err);
  CHECK(taken.code == kExitOk);
  REQUIRE(trial.echelon({"export", trial.run(), "--out", "split.safetensors"}).code == kExitOk);
  const auto exported = open_weights(trial / "split.safetensors");
  std::vector<double> values;
  for (const StoredTensor& tensor : exported->tensors()) {
    std::vector<double> one(static_cast<std::size_t>(tensor.shape.elems()));
    exported->read(tensor, one.data(), DType::f64);
    values.insert(values.end(), one.begin(), one.end());
  }
  CHECK(values == test::last_values(trial, "weights/"));
}

}  // namespace echelon
