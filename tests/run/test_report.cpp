// SPDX-License-Identifier: Apache-2.0
// Checks the output of `echelon report` for a folder of real results.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon::test {
namespace {

using nlohmann::json;

Outcome run_report(const Trial& trial, std::vector<std::string> words) {
  words.insert(words.begin(), "report");
  return trial.echelon(words);
}

json study_of(const json& report, const std::string& kind, bool paced) {
  for (const json& study : report["studies"])
    if (study["kind"] == kind && study["paced"] == paced) return study;
  return {};
}

double sum_of_parts(const json& row) {
  double sum = 0;
  for (const auto& part : row["time_percent"].items()) sum += part.value().get<double>();
  return sum;
}

}  // namespace

TEST_CASE("real runs become strong, weak and paced tables; a diverged run is listed and not counted",
          "[report][slow]") {
  const Trial trial;
  const std::string anew = "run.restart=never", threads = "device.threads=1";
  for (const int ranks : {1, 2}) REQUIRE(trial.train(ranks, {anew, threads}).code == kExitOk);
  REQUIRE(trial.train(2, {anew, threads, "batch.scale_with_replicas=true"}).code == kExitOk);
  for (const int ranks : {1, 3})
    REQUIRE(trial.train(ranks, {anew, threads, "device.kind=paced", "train.steps=6", "data.test=\"\""}).code ==
            kExitOk);
  REQUIRE(trial.train(0, {anew, threads, "optimizer.learning_rate=1000", "optimizer.weight_decay=1"}).code ==
          kExitNumeric);

  const Outcome outcome = run_report(trial, {"results", "--out", "tables", "--name", "trial"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  const json tables = json::parse(read_file_whole(trial / "tables/trial.json"));

  const json strong = study_of(tables, "strong", false);
  REQUIRE(strong["rows"].size() == 2);
  const json &one = strong["rows"][0], &two = strong["rows"][1];
  CHECK(two["ranks"] == 2);
  CHECK(two["global_batch"] == one["global_batch"]);
  CHECK(two["speed_up"].get<double>() ==
        Approx(two["samples_per_s"]["median"].get<double>() / one["samples_per_s"]["median"].get<double>()));
  CHECK(two["efficiency"].get<double>() == Approx(two["speed_up"].get<double>() / 2));
  CHECK(two["wire_bytes_per_step"] == two["formula_bytes_per_step"]);
  CHECK(sum_of_parts(one) == Approx(100));
  CHECK(sum_of_parts(two) == Approx(100));
  // A step has the same samples for every number of ranks, so the accuracy is the same.
  CHECK(one["test_accuracy"]["median"].get<double>() ==
        Approx(two["test_accuracy"]["median"].get<double>()).margin(0.03));

  const json weak = study_of(tables, "weak", false);
  REQUIRE(weak["rows"].size() == 2);
  CHECK(weak["rows"][1]["global_batch"] == 2 * weak["rows"][0]["global_batch"].get<int>());
  const json paced = study_of(tables, "strong", true);
  REQUIRE(paced["rows"].size() == 2);
  CHECK(paced["rows"][1]["train_loss"].is_null());

  REQUIRE(tables["not_counted"].size() == 1);
  CHECK(tables["not_counted"][0]["state"] == "failed");
  // Each setting has one repetition: the answer comes first, and names no winner.
  CHECK(outcome.out.find(": Not decided: ") < outcome.out.find('\n'));
  for (const char* words : {"Strong scaling: ", "Weak scaling: ", "(paced)", "not counted", "tables/trial.md"})
    CHECK(outcome.out.find(words) != std::string::npos);
}

TEST_CASE("a codec that costs accuracy is warned of beside the run without one", "[report]") {
  const Trial trial;
  for (const char* seed : {"seed=7", "seed=8", "seed=9"}) {
    REQUIRE(trial.train(2, {seed}).code == kExitOk);
    REQUIRE(trial.train(2, {seed, "exchange.codec=threshold", "exchange.tau=1000"}).code == kExitOk);  // sends nothing
  }
  REQUIRE(trial.train(2, {"exchange.codec=lossless"}).code == kExitOk);
  const Outcome outcome = run_report(trial, {"results", "--out", "tables", "--name", "trial"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  CHECK(outcome.out.find("warning: codec threshold (tau 1000) on 2 ranks costs ") != std::string::npos);
  const json tables = json::parse(read_file_whole(trial / "tables/trial.json"));
  REQUIRE(tables["warnings"].size() == 4);  // one of the codec, and one of each run that learned nothing
  CHECK(tables["warnings"][1].get<std::string>().find("no weight has changed in 51 steps") != std::string::npos);
  CHECK(tables["warnings"][0].get<std::string>().find("(3 seeds) without a codec") != std::string::npos);
}

TEST_CASE("a run is converted for TensorBoard and MLPerf, finished or not", "[report]") {
  const Trial trial;
  REQUIRE(trial.train(2, {"train.steps=6"}).code == kExitOk);
  const Outcome outcome = run_report(trial, {"results", "--tensorboard", "events", "--mllog", "mllog"});
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  CHECK(read_file_whole(trial / "mllog/result_0.txt").starts_with(":::MLLOG {"));
  int events = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(trial / "events"))
    events += entry.path().filename().string().starts_with("events.out.tfevents.");
  CHECK(events == 1);
  CHECK_FALSE(std::filesystem::exists(trial / "results/scaling.md"));
  std::filesystem::remove(trial.attempt() + "/metrics.jsonl");
  CHECK(run_report(trial, {"results", "--mllog", "mllog"}).code == kExitData);
}

TEST_CASE("a report of an empty folder says what is missing and writes nothing", "[report]") {
  const Trial trial;
  CHECK(run_report(trial, {"nowhere"}).code == kExitConfig);
  make_folders(trial / "results/broken/01");
  CHECK(run_report(trial, {"results"}).code == kExitConfig);
  write_file_whole(trial / "results/broken/01/status.json", R"({"state":"failed","exit_code":5,"reason":"loss"})");
  CHECK(run_report(trial, {"results", "--out", "tables"}).code == kExitData);
  write_file_whole(trial / "results/broken/01/summary.json", "{");
  CHECK(run_report(trial, {"results", "--out", "tables"}).code == kExitData);
  CHECK_FALSE(std::filesystem::exists(trial / "tables"));
  CHECK(run_report(trial, {"results", "--name", "a/b"}).code == kExitConfig);
}

}  // namespace echelon::test
