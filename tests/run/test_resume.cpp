// SPDX-License-Identifier: Apache-2.0
// Runs that are killed, stopped or damaged, and then resumed.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"
#include "tests/run/compare.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

namespace fs = std::filesystem;
using test::check_equal;
using test::train_run;
using test::with;

// These runs take a second or two, paced so that a quick machine is still busy when the signal comes.
constexpr int kSteps = 2720;
const test::Sets kLong = {"train.epochs=160", "evaluate.every_epochs=40", "checkpoint.every_epochs=0",
                          "checkpoint.every_steps=40", "device.pace_ms=0.5"};

// This run is killed within its first 500 steps.
const test::Sets kKilled = with(kLong, {"train.epochs=70", "evaluate.every_epochs=35", "device.pace_ms=1"});
constexpr int kStepsOfKilled = 1190;

// Checks that all attempts together have every step once, in order: kills lose no row that lies before a checkpoint.
void check_history(const test::Trial& trial, int steps) {
  std::vector<int> seen;
  for (const auto& row : trial.metrics())
    if (row["type"] == "step") seen.push_back(row["step"].get<int>());
  std::vector<int> all(static_cast<std::size_t>(steps));
  std::iota(all.begin(), all.end(), 1);
  CHECK(seen == all);
}

TEST_CASE("a run killed by SIGKILL at any step ends with the bits of one that was not", "[run][slow]") {
  const auto [ranks, mesh] = GENERATE(table<int, test::Sets>({{0, {}}, {2, {}}, {2, {"parallel.pipeline=2"}}}));
  const test::Trial killed;
  const test::Sets sets = with(kKilled, mesh);
  const test::TrainedRun undisturbed = train_run(killed, "undisturbed", {{ranks}}, sets);
  const HashRng draws(test::test_seed(), "kill");
  int kills = 0;
  for (int round = 0; round < 3; ++round) {
    // The moment depends on steps done, not on the machine's speed, and lies anywhere between two checkpoints.
    const auto draw = static_cast<std::uint64_t>(round);
    const auto step = 40 * (4 * draw + draws.at(1).below(draw, 4));
    const double pause_s = 0.03 * draws.at(2).uniform(draw);
    // The ranks are the children of mpirun, or the process is the rank.
    const test::Outcome outcome = killed.train_and(ranks, sets,
                                                   fmt::format("running; [ {0} = 0 ] || reached {0}; sleep {1:.3f}; "
                                                               "kill -9 $(pgrep -P $pid || echo $pid); wait $pid",
                                                               step, pause_s));
    INFO(outcome.out << outcome.err);
    REQUIRE(!outcome.timed_out);
    if (outcome.code == 0) break;  // the run ended before the kill
    ++kills;
  }
  const test::TrainedRun last = train_run(killed, "trial", {{ranks}}, sets);
  CHECK(kills > 0);
  check_equal(last, undisturbed, {.part = ""});
  CHECK(killed.leftovers().empty());
  if (killed.attempts() > 1) check_history(killed, kStepsOfKilled);
}

TEST_CASE("USR1 stops with 75 and a checkpoint, from which the same command goes on", "[run][slow]") {
  const test::Trial trial;
  const int ranks = GENERATE(0, 2);
  test::Sets sets = kLong;
  sets.push_back("checkpoint.every_steps=0");
  const test::Outcome stopped = trial.train_and(ranks, sets, "running; kill -USR1 $pid; wait $pid");
  INFO(stopped.out << stopped.err);
  REQUIRE(stopped.code == 75);
  const auto status = trial.status();
  CHECK(status["state"] == "stopped");
  CHECK(status["exit_code"] == 75);
  const int step = status["step"];
  CHECK(step > 0);
  CHECK(fs::exists(trial.run() + "/" + status["checkpoint"].get<std::string>()));
  CHECK(trial.summary()["state"] == "stopped");
  const test::Outcome resumed = trial.train(ranks, sets);
  INFO(resumed.out << resumed.err);
  CHECK(resumed.code == 0);
  CHECK_THAT(resumed.out, Catch::Contains(fmt::format("from step {}:", step)));
  CHECK(trial.summary()["steps"] == kSteps);
  check_history(trial, kSteps);
}

TEST_CASE("a signal to one rank alone stops all of them at one step", "[run][slow]") {
  const test::Trial trial;
  const test::Outcome stopped = trial.train_and(2, kLong, "running; kill -USR2 $(rank 1); wait $pid");
  INFO(stopped.out << stopped.err);
  CHECK(stopped.code == 75);
  CHECK(trial.status()["state"] == "stopped");
}

TEST_CASE("TERM, INT and HUP as the conventions have them", "[run][slow]") {
  const test::Trial trial;
  test::Sets sets = kLong;
  sets.push_back("checkpoint.every_steps=0");
  SECTION("TERM: checkpoint, 75") {
    const test::Outcome outcome = trial.train_and(0, sets, "running; kill -TERM $pid; wait $pid");
    CHECK(outcome.code == 75);
    CHECK(trial.status()["exit_code"] == 75);
  }
  SECTION("INT: checkpoint, 130") {
    const test::Outcome outcome = trial.train_and(0, sets, "running; kill -INT $pid; wait $pid");
    CHECK(outcome.code == 130);
    CHECK(trial.status()["exit_code"] == 130);
    CHECK(fs::exists(trial.run() + "/checkpoints/latest"));
  }
  SECTION("HUP: checkpoint and go on") {
    const test::Outcome outcome = trial.train_and(
        0, sets,
        "running; kill -HUP $pid; wait $pid; code=$?; ls results/trial/*/checkpoints/*.h5 | wc -l; exit $code");
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK(trial.status()["state"] == "finished");
    CHECK_THAT(outcome.out, Catch::EndsWith("\n2\n"));  // the one asked for, and the last one
  }
  CHECK(trial.leftovers().empty());
}

TEST_CASE("a job that stands still as a whole for longer than its timeout goes on", "[run][slow]") {
  const test::Trial trial;
  const test::Outcome outcome = trial.train_and(
      2, with(kLong, {"run.hang_timeout_s=1", "train.epochs=20"}),
      "running; both='$(rank 0) $(rank 1)'; eval kill -STOP $both; sleep 3.5; eval kill -CONT $both; wait $pid");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitOk);
}

TEST_CASE("a rank that stands still before its run begins ends the job with 7", "[run]") {
  const test::Trial trial;
  const test::Outcome outcome =
      trial.train_and(2, {"run.hang_timeout_s=2"},
                      "while kill -0 $pid && [ -z \"$(rank 1)\" ]; do :; done; kill -STOP $(rank 1); wait $pid");
  INFO(outcome.out << outcome.err);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.code == kExitLostRank);
  CHECK_THAT(outcome.err, Catch::Contains(" has been waiting 2.") && Catch::Contains("stopped: rank 1 (PID "));
}

TEST_CASE("a second TERM or INT ends a run at once, and its status says so", "[run]") {
  const test::Trial trial;
  const std::string signal = GENERATE(as<std::string>(), "TERM", "INT");
  const int code = signal == "TERM" ? 143 : 130;
  // A step takes minutes, so that the first signal cannot be answered.
  const test::Outcome outcome = trial.train_and(
      0, {"device.kind=paced", "device.paced_gflops=0.0001", "data.test=\"\""},
      fmt::format("for i in $(seq 500); do grep -qs running results/*/run-*/01/status.json && break; sleep 0.02; done; "
                  "sleep 0.3; kill -{0} $pid; sleep 0.3; kill -{0} $pid; {1} wait $pid",
                  signal, signal == "TERM" ? "sleep 4; kill -0 $pid && echo goes on; sleep 1; kill -TERM $pid;" : ""),
      30);
  INFO(outcome.out << outcome.err);
  // Slurm and srun may each send a TERM at the end of a job; a second TERM right after the first does not count.
  if (signal == "TERM") CHECK_THAT(outcome.out, Catch::Contains("goes on"));
  CHECK(outcome.code == code);
  CHECK(trial.status()["state"] == "stopped");
  CHECK(trial.status()["exit_code"] == code);
  CHECK_THAT(trial.status()["reason"].get<std::string>(), Catch::Contains("second SIG" + signal));
}

TEST_CASE("a job stops itself in time before its scheduler ends it, and not earlier", "[run][slow]") {
  const test::Trial trial;
  // The limit minus a minute has passed, so the run has half of what is left.
  const std::int64_t soon = std::time(nullptr) + 16;
  const test::Outcome stopped =
      trial.train(2, {"train.epochs=20000", "checkpoint.every_steps=0", "checkpoint.every_epochs=0"},
                  {{"ECHELON_JOB_END_TIME", std::to_string(soon)}, {"PBS_JOBID", "4711"}});
  CHECK(std::time(nullptr) < soon + 4);  // includes the start on busy cores
  INFO(stopped.out << stopped.err);
  CHECK(stopped.code == 75);
  const auto status = trial.status();
  CHECK(status["exit_code"] == 75);
  CHECK_THAT(status["reason"].get<std::string>(), Catch::Contains("the job ends soon"));
  CHECK(status["provenance"]["job_id"] == "4711");
  CHECK(fs::exists(trial.run() + "/" + status["checkpoint"].get<std::string>()));
  const test::Trial other;
  const std::string end = std::to_string(std::time(nullptr) + 40);
  const test::Outcome finished =
      other.train(2, {"run.stop_before_end_s=1"}, {{"SLURM_JOB_END_TIME", end}, {"SLURM_JOB_ID", "4712"}});
  CHECK(finished.code == 0);
  CHECK(other.status()["state"] == "finished");
  CHECK(other.status()["provenance"]["job_id"] == "4712");
}

TEST_CASE("a thousand signals do no harm", "[run][slow]") {
  const test::Trial trial;
  const test::Outcome outcome = trial.train_and(
      0, {"train.epochs=2000", "checkpoint.every_steps=0", "checkpoint.every_epochs=0", "evaluate.every_epochs=0"},
      "running; for i in $(seq 20); do for j in $(seq 500); do kill -HUP $pid; done; sleep 0.1; done; kill -USR1 $pid; "
      "wait $pid");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 75);
}

TEST_CASE("a run goes on with another number of ranks", "[run][slow]") {
  const test::Trial trial;
  test::Sets sets = {"checkpoint.every_steps=5"};
  const test::Outcome first = trial.train(2, {"train.steps=20"});
  REQUIRE(first.code == 0);
  const test::Outcome second = trial.train(1);
  INFO(second.out << second.err);
  CHECK(second.code == 0);
  CHECK_THAT(second.out, Catch::Contains("resuming on 1 replica from a run of 2 replicas"));
  CHECK(trial.summary()["test_accuracy"].get<double>() > 0.9);
  check_history(trial, 51);
}

TEST_CASE("a damaged newest checkpoint is passed over, aloud", "[run][slow]") {
  const test::Trial trial;
  const test::TrainedRun whole = train_run(trial, "whole", {{0}});
  REQUIRE(trial.train(0, {"train.steps=25"}).code == 0);
  const std::string newest = trial.run() + "/checkpoints/step-00000025.h5";
  fs::resize_file(newest, fs::file_size(newest) / 2);
  const test::Outcome outcome = trial.train(0);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("step-00000025 is damaged and was skipped"));
  CHECK_THAT(outcome.out, Catch::Contains("from step 20:"));
  for (const auto& record : {trial.status(), trial.summary()}) {
    REQUIRE(record["damaged_checkpoints"].size() == 1);
    CHECK_THAT(record["damaged_checkpoints"][0].get<std::string>(), Catch::StartsWith("step-00000025: the file has "));
  }
  CHECK(trial.summary()["weights_checksum"] == whole.summary()["weights_checksum"]);
}

TEST_CASE("a requeue loop goes on after all newer checkpoints were damaged", "[run][slow]") {
  const test::Trial trial;
  test::Sets sets = kLong;
  sets.insert(sets.end(), {"checkpoint.every_steps=10", "train.steps=20"});
  REQUIRE(trial.train(0, sets).code == 0);
  const std::string checkpoints = trial.run() + "/checkpoints/";
  for (const char* extension : {".h5", ".json"})  // a later step than the next attempts reach
    fs::copy_file(checkpoints + "step-00000020" + extension, checkpoints + "step-00900000" + extension);
  for (const char* stem : {"step-00000020", "step-00900000"}) fs::resize_file(checkpoints + stem + ".h5", 1000);
  sets = kLong;
  sets.push_back("checkpoint.every_steps=0");
  const test::Outcome anew = trial.train_and(0, sets, "running; kill -USR1 $pid; wait $pid");
  INFO(anew.out << anew.err);
  REQUIRE(anew.code == 75);
  CHECK_THAT(anew.err, Catch::Contains("step-00900000 is damaged and was skipped") &&
                           Catch::Contains("were moved to " + trial.run().substr(trial.run().find("results"))));
  CHECK(fs::exists(trial.run() + "/damaged-before-02/step-00900000.h5"));
  const int step = trial.status()["step"];
  REQUIRE(fs::exists(trial.run() + "/" + trial.status()["checkpoint"].get<std::string>()));
  sets.push_back(fmt::format("train.steps={}", step + 3));
  const test::Outcome resumed = trial.train(0, sets);
  INFO(resumed.out << resumed.err);
  CHECK(resumed.code == 0);
  CHECK_THAT(resumed.out, Catch::Contains(fmt::format("from step {}:", step)));
}

TEST_CASE("of two processes that start one run at once one trains; a killed process holds no lock", "[run][slow]") {
  const test::Trial trial;
  const test::Sets sets = {"train.epochs=100000", "checkpoint.every_epochs=0", "checkpoint.every_steps=0",
                           "evaluate.every_epochs=0"};
  std::string again;
  for (const std::string& word : trial.words(0, sets)) again += "'" + word + "' ";
  const test::Outcome both = trial.train_and(0, sets, again + R"(& second=$!
wait -n -p refused $pid $second
echo "refused with $?"
[ $refused = $pid ] && pid=$second
echo "holder $pid"
running
kill -9 $pid
wait $pid)");
  INFO(both.out << both.err);
  REQUIRE(!both.timed_out);
  CHECK_THAT(both.out, Catch::Contains("refused with 3"));
  const std::string holder = both.out.substr(
      both.out.find("holder ") + 7, both.out.find('\n', both.out.find("holder ")) - both.out.find("holder ") - 7);
  CHECK_THAT(both.err, Catch::Contains("is being trained by process " + holder + " on "));
  CHECK(trial.attempts() == 1);
  const test::Outcome next = trial.train_and(0, sets, "running; kill -USR1 $pid; wait $pid");
  INFO(next.out << next.err);
  CHECK(next.code == 75);
  CHECK_THAT(next.out, Catch::Contains("was held by process " + holder));
  CHECK(read_file_whole(trial.run() + "/lock").empty());
}

TEST_CASE("a results folder without a name, or with a line break in it, is refused", "[run]") {
  const test::Trial trial;
  for (const char* set : {R"(run.results="")", R"(run.results="two\nlines")"}) {
    const test::Outcome refused = trial.train(0, {set});
    INFO(refused.err);
    CHECK(refused.code == 2);
    CHECK_THAT(refused.err, Catch::Contains("run.results"));
  }
}

TEST_CASE("restart = require without a checkpoint is refused, and so is a resume with another batch", "[run][slow]") {
  const test::Trial trial;
  const test::Outcome none = trial.train(0, {"run.restart=require"});
  CHECK(none.code == 3);
  CHECK_THAT(none.err, Catch::Contains("no good checkpoint"));
  const test::Sets weak = {"batch.scale_with_replicas=true", "batch.global=24", "train.steps=10"};
  REQUIRE(trial.train(1, weak).code == 0);
  const test::Outcome other = trial.train(2, with(weak, {"train.steps=20"}));
  INFO(other.err);
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Catch::Contains("steps of 24 samples, but this run would take 48"));
}

}  // namespace
}  // namespace echelon
