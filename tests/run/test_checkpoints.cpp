// SPDX-License-Identifier: Apache-2.0
// Checkpoints of runs: written beside training or not, read back; the best ones are kept, and all of them get damaged.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using test::check_equal;
using test::train_run;

// The learning rate rises until training diverges.
const test::Sets kUndone = {"optimizer.learning_rate=1", "optimizer.warmup_epochs=4", "train.epochs=4",
                            "train.divergence_factor=1e9"};

struct Best {
  std::int64_t step = -1;
  double loss = 1e300, accuracy = -1;
};

// Returns the best of all evaluations in all attempts.
Best best_in(const test::Trial& trial, const std::string& metric, const std::string& run) {
  Best best;
  for (const auto& row : trial.all_metrics(run)) {
    if (row["type"] == "step" || row["type"] == "checkpoint" || row["test_loss"].is_null()) continue;
    const Best now{row["step"], row["test_loss"], row["test_accuracy"]};
    if (metric == "test_loss" ? now.loss < best.loss : now.accuracy > best.accuracy) best = now;
  }
  return best;
}

void check_best(const test::Trial& trial, const std::string& metric, const std::string& run = "trial") {
  const Best best = best_in(trial, metric, run);
  const std::string name = fmt::format("checkpoints/step-{:08}.h5", best.step);
  const auto summary = trial.summary(run), status = trial.status(run);
  CHECK(summary["best_checkpoint"] == name);
  CHECK(summary["best_figure"] == (metric == "test_loss" ? best.loss : best.accuracy));
  CHECK(status["best_checkpoint"] == name);
  CHECK(status["checkpoint"] != name);  // it is not the newest checkpoint
  CHECK(fs::exists(trial.run(run) + "/" + name));
  CHECK(fs::exists(trial.run(run) + "/" + status["checkpoint"].get<std::string>()));
  const test::Outcome outcome = trial.echelon({"eval", trial.run(run) + "/checkpoints/best", "test"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitOk);
  CHECK_THAT(outcome.out, Contains(fmt::format("at step {}", best.step)) &&
                              Contains(fmt::format("accuracy {:.2f} %", 100 * best.accuracy)));
  int checkpoints = 0;
  for (const auto& entry : fs::directory_iterator(trial.run(run) + "/checkpoints"))
    checkpoints += entry.path().extension() == ".h5";
  CHECK(checkpoints == 2);
}

}  // namespace

TEST_CASE("the same bits whether checkpoints are written beside training, read back, or neither",
          "[run][checkpoints][slow]") {
  const test::Trial trial;
  const int ranks = GENERATE(0, 2);
  const test::Sets often = {"checkpoint.every_steps=1", "evaluate.every_epochs=0"};
  std::vector<test::TrainedRun> runs;
  for (const char* name : {"beside", "verified", "waited"}) {
    const bool beside = std::string_view(name) != "waited", verified = std::string_view(name) == "verified";
    runs.push_back(train_run(trial, name,
                             {{.ranks = ranks,
                               .sets = {"train.steps=12", fmt::format("checkpoint.asynchronous={}", beside),
                                        fmt::format("checkpoint.verify={}", verified)}},
                              {.ranks = ranks, .sets = {"train.steps=25"}, .says = "from step 12:"}},
                             often));
    check_equal(runs.back(), runs.front(), {.part = "", .steps = 25});
    const auto summary = trial.summary(name);
    CHECK(summary["checkpoints"] == 13);
    const double blocked_s = summary["checkpoint_blocked_s"], write_s = summary["checkpoint_write_s"];
    CHECK((blocked_s > 0 && write_s > 0));
    std::vector<std::int64_t> steps;
    double rows_s = 0;
    for (const auto& row : trial.all_metrics(name)) {
      if (row["type"] != "checkpoint") continue;
      steps.push_back(row["step"]);
      if (row["step"] > 12) rows_s += row["write_s"].get<double>();
      CHECK(row["bytes"] > 200000);
    }
    REQUIRE(steps.size() >= 24);  // the row of step 12's checkpoint may be written after the cut
    CHECK((steps.front() == 1 && steps.back() == 25));
    CHECK(rows_s == Approx(write_s));
  }
}

TEST_CASE("the best checkpoint is kept beside the newest, over a resume too", "[run][checkpoints][slow]") {
  const test::Trial trial;
  const std::string metric = GENERATE("test_accuracy", "test_loss");
  test::Sets sets = test::with(kUndone, {"checkpoint.keep=1", "checkpoint.keep_best=" + metric});
  REQUIRE(trial.train(0, test::with(sets, {"train.steps=60"})).code == 0);
  check_best(trial, metric);
  sets.push_back("evaluate.every_steps=3");  // another experiment, with evaluations between ends of epochs too
  sets.push_back("name=often");
  const test::Outcome often = trial.train(2, sets);
  INFO(often.out << often.err);
  REQUIRE(often.code == 0);
  check_best(trial, metric, "often");
  const test::Outcome resumed =
      trial.train(0, test::with(kUndone, {"checkpoint.keep=1", "checkpoint.keep_best=" + metric}));
  INFO(resumed.out << resumed.err);
  REQUIRE(resumed.code == 0);
  CHECK_THAT(resumed.out, Contains("from step 60:") && Contains("best: "));
  check_best(trial, metric);
}

TEST_CASE("where all checkpoints are damaged the run ends with 4, names them, and moves nothing",
          "[run][checkpoints]") {
  const test::Trial trial;
  REQUIRE(trial.train(0, {"train.steps=10"}).code == 0);
  const std::string checkpoints = trial.run() + "/checkpoints/";
  for (const char* name : {"step-00000005.h5", "step-00000010.h5"}) {
    const auto manifest =
        nlohmann::json::parse(read_file_whole(checkpoints + fs::path(name).stem().string() + ".json"));
    for (const auto& entry : manifest["datasets"]) {
      if (entry["name"] != "weights/conv1.weight" && entry["name"] != "optimiser/momentum/conv1.weight") continue;
      std::string bytes = read_file_whole(checkpoints + name);
      auto& byte = bytes[entry["offset"].get<std::size_t>() + entry["bytes"].get<std::size_t>() - 1];
      byte = static_cast<char>(byte ^ 1);
      write_file_whole(checkpoints + name, bytes);
    }
  }
  const test::Outcome refused = trial.train(0);
  INFO(refused.out << refused.err);
  CHECK(refused.code == kExitData);
  CHECK_THAT(refused.err, Contains("all checkpoints are damaged (step-00000010: 'weights/conv1.weight', "
                                   "'optimiser/momentum/conv1.weight' do not ") &&
                              Contains("; step-00000005: ") && Contains("'optimiser/momentum/conv1.weight'") &&
                              Contains("run.restart=never"));
  CHECK(fs::exists(checkpoints + "step-00000010.h5"));
  CHECK(trial.attempts() == 1);
  const test::Outcome anew = trial.train(0, {"run.restart=never", "train.steps=5"});
  INFO(anew.out << anew.err);
  CHECK(anew.code == 0);
  CHECK(trial.status()["checkpoint"] == "checkpoints/step-00000005.h5");
}

}  // namespace echelon
