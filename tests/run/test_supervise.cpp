// SPDX-License-Identifier: Apache-2.0
// `echelon supervise`: launchers that hang, ranks that are all killed, and hosts that leave and come back.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Outcome;
using test::Sets;
using test::Trial;

const Sets kSlow = {"device.pace_ms=10", "train.epochs=12", "checkpoint.every_steps=10", "checkpoint.every_epochs=0",
                    "evaluate.every_epochs=0"};

// Returns the shell words that train the trial under `launcher`.
std::string train_text(const std::string& launcher, const Sets& sets) {
  std::string text = launcher + " " + test::echelon_binary() + " train trial.toml";
  for (const std::string& set : sets) text += " --set " + set;
  return text;
}

// Runs `echelon supervise options.. -- sh -c command` beside `script` (Trial::train_and), in which `ranks` prints the
// processes of this trial's ranks.
Outcome run_and(const Trial& trial, const std::string& options, const std::string& command, const std::string& script) {
  constexpr const char* kRanks = R"sh(ranks() {
  for p in $(pgrep -f "^[^ ]*echelon train trial.toml"); do
    [ "$(readlink /proc/$p/cwd)" = "$PWD" ] && echo $p
  done
}
)sh";
  return trial.in_background(fmt::format("{} supervise {} -- sh -c '{}' ", test::echelon_binary(), options, command),
                             kRanks + script);
}

std::string mpirun_text(const std::string& ranks) {
  return "exec mpirun --oversubscribe --allow-run-as-root --bind-to none -n " + ranks;
}

// Creates files: a host answers if its file exists. The ranks are processes of this machine.
void touch(const Trial& trial, const std::vector<std::string>& names) {
  for (const std::string& name : names) std::ofstream(trial / name) << "";
}

}  // namespace

TEST_CASE("a TERM to echelon supervise stops the ranks of mpirun with a checkpoint", "[run]") {
  const Trial trial;
  const std::string launch = train_text("mpirun --oversubscribe --allow-run-as-root --bind-to none -n 2", kSlow);
  const Outcome outcome = trial.in_background(
      fmt::format("{} supervise -- {} ", test::echelon_binary(), launch),
      "for i in $(seq 500); do ls results/*/run-*/checkpoints/step-*.h5 && break; sleep 0.02; done; kill -TERM $pid; "
      "wait $pid");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitRequeue);
  CHECK(trial.status()["exit_code"] == kExitRequeue);
  CHECK_THAT(trial.status()["reason"].get<std::string>(), Contains("checkpoint of step"));
}

TEST_CASE("the first launch is on those hosts alone that answer", "[run][supervise]") {
  const Trial trial;
  touch(trial, {"up-b"});
  const auto code = [&](const std::string& least) {
    return run_and(trial, "--hosts a,b,c --min-hosts " + least + " --probe \"test -e up-{host}\"",
                   "test {hosts} = b && " + train_text("exec", {"train.steps=3"}), "wait $pid");
  };
  CHECK(code("1").code == kExitOk);
  const Outcome few = code("2");
  CHECK(few.code == kExitEnvironment);
  CHECK_THAT(few.err, Contains("1 of 3 hosts answer, fewer than --min-hosts 2"));
}

TEST_CASE("run returns what the run under it returns", "[run][supervise]") {
  const Trial trial;
  const auto code = [&](const std::string& options, const std::string& command) {
    const Outcome outcome = run_and(trial, options, command, "wait $pid");
    INFO(outcome.out << outcome.err);
    CHECK_FALSE(outcome.timed_out);
    return outcome.code;
  };
  CHECK(code("", train_text("", {"train.steps=3"})) == kExitOk);
  CHECK(code("", train_text("", {"train.stepz=3"})) == kExitConfig);
  CHECK(code("", "exit 3") == 3);
  CHECK(code("--hosts a,b", "exit 0") == kExitConfig);  // no {hosts} in the command
  CHECK(code("--hosts a,b --min-hosts 3", "true {hosts}") == kExitConfig);
}

TEST_CASE("a launcher that does not return after its run is ended, with the run's own code", "[run][supervise]") {
  const Trial trial;
  const Outcome outcome =
      run_and(trial, "--grace 0.5", train_text("", {"train.steps=3"}) + "; sleep 1000", "wait $pid");
  INFO(outcome.out << outcome.err);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.code == kExitOk);
  CHECK_THAT(outcome.err, Contains("has not returned"));
}

// Open MPI 4.1's mpirun hangs like this when a rank is killed while it starts others (tests/tools/start_kills.py sees
// it in about 1 of 100 kills): it stays as a process of this name that does not wait for its ended child.
TEST_CASE("a launcher that takes no notice of the end of a rank is ended, and the run started again",
          "[run][supervise]") {
  const Trial trial;
  const std::string stuck = "cp $(command -v sleep) mpirun; touch once; sleep 0.1 & exec ./mpirun 1000";
  const Outcome given_up = run_and(trial, "--grace 1", stuck, "wait $pid");
  INFO(given_up.out << given_up.err);
  CHECK_FALSE(given_up.timed_out);
  CHECK(given_up.code == kExitLostRank);
  CHECK_THAT(given_up.err, Contains("has not reacted to the end of a rank"));
  const Outcome again =
      run_and(trial, "--grace 1 --restarts 1",
              "if [ -e once ]; then rm once; " + stuck.substr(0, stuck.find("touch")) +
                  stuck.substr(stuck.find("sleep 0.1")) + "; fi; " + train_text("exec", {"train.steps=3"}),
              "wait $pid");
  INFO(again.out << again.err);
  CHECK(again.code == kExitOk);
  CHECK(trial.status()["state"] == "finished");
}

TEST_CASE("ranks whose launcher was killed have left before the run is started again", "[run][supervise]") {
  const Trial trial;
  const Outcome outcome = run_and(trial, "--restarts 1", train_text(mpirun_text("2"), kSlow),
                                  "reached 20; kill -9 $(pgrep -P $pid); wait $pid");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitOk);
  CHECK(trial.attempts() == 2);
  CHECK(trial.status()["state"] == "finished");
}

// A rank is stopped once the run has ended, so that the other ranks or the launcher wait for it.
TEST_CASE("a rank that is stopped in shut-down keeps neither the launcher nor the code", "[run][supervise]") {
  const Trial trial;
  const Outcome outcome = run_and(trial, "--grace 1", train_text(mpirun_text("2"), {"train.steps=60"}),
                                  "all=$(running; ranks); until grep -qs finished results/trial/run-*/01/verdict.json; "
                                  "do sleep 0.002; done; kill -STOP ${all#* }; wait $pid; code=$?; "
                                  "[ -z \"$(ranks)\" ] || echo left; exit $code");
  INFO(outcome.out << outcome.err);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.code == kExitOk);
  CHECK_THAT(outcome.out, !Contains("left"));
  CHECK(trial.status()["exit_code"] == kExitOk);
}

TEST_CASE("a launcher that fails at a restart is started again", "[run][supervise]") {
  const Trial trial;
  const Outcome outcome = run_and(trial, "--restarts 3",
                                  "if [ -e lost ]; then if [ ! -e failed ]; then touch failed; exit 1; fi; fi; " +
                                      train_text(mpirun_text("2"), kSlow),
                                  "reached 20; touch lost; kill -9 $(ranks); wait $pid");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitOk);
  CHECK(trial.attempts() == 2);
}

TEST_CASE("a run that goes on without lost workers is left alone after each loss", "[run][supervise]") {
  const Trial trial;
  const Sets sets = test::with(kSlow, {"exchange.strategy=gossip", "run.on_lost_worker=continue"});
  const Outcome outcome =
      run_and(trial, "--grace 1", "export OMPI_MCA_orte_enable_recovery=1; " + train_text(mpirun_text("3"), sets),
              "reached 20; kill -9 $(ranks | tail -1); reached 80; kill -9 $(ranks | tail -1); wait $pid");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitOk);
  CHECK_THAT(outcome.err, !Contains("has not returned"));
  CHECK(trial.attempts() == 3);
  CHECK(trial.summary()["ranks"] == 1);
}

TEST_CASE("a run whose ranks are all killed has its end written, and goes on", "[run][supervise]") {
  const Trial trial;
  const Outcome killed =
      run_and(trial, "", train_text(mpirun_text("2"), kSlow), "reached 20; kill -9 $(ranks); wait $pid");
  INFO(killed.out << killed.err);
  CHECK(killed.code == kExitLostRank);
  const auto status = trial.status();
  CHECK(status["state"] == "failed");
  CHECK(status["exit_code"] == kExitLostRank);
  const Outcome again =
      run_and(trial, "--restarts 1", train_text(mpirun_text("2"), kSlow), "reached 60; kill -9 $(ranks); wait $pid");
  INFO(again.out << again.err);
  CHECK(again.code == kExitOk);
  CHECK(trial.attempts() == 3);
  CHECK(trial.status()["state"] == "finished");
}

TEST_CASE("hosts that are lost are left out, and taken in again when they are back", "[run][supervise][slow]") {
  const Trial trial;
  touch(trial, {"up-a", "up-b", "up-c"});
  const Outcome outcome =
      run_and(trial, "--hosts a,b,c --min-hosts 2 --restarts 3 --look 0.3 --probe \"test -e up-{host}\"",
              "echo on {hosts} {slots} {nodes}; " + train_text(mpirun_text("{ranks}"), kSlow),
              "reached 20; rm up-b; kill -9 $(ranks | tail -1); reached 60; touch up-b; wait $pid");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitOk);
  CHECK_THAT(outcome.out, Contains("on a,b,c a:1,b:1,c:1 3") && Contains("on a,c a:1,c:1 2"));
  CHECK_THAT(outcome.out, Contains("starts again on 2 of 3 hosts: a, c") && Contains("a lost host answers again") &&
                              Contains("starts again on 3 of 3 hosts: a, b, c"));
  CHECK(trial.attempts() == 3);
  CHECK(trial.summary()["steps"] == 17 * 12);
  CHECK(trial.summary()["ranks"] == 3);

  const Trial other;
  touch(other, {"up-a", "up-b", "up-c"});
  const Outcome few = run_and(other, "--hosts a,b,c --min-hosts 3 --restarts 3 --probe \"test -e up-{host}\"",
                              "true {hosts}; " + train_text(mpirun_text("{ranks}"), kSlow),
                              "reached 20; rm up-b; kill -9 $(ranks | tail -1); wait $pid");
  INFO(few.out << few.err);
  CHECK(few.code == kExitLostRank);
  CHECK_THAT(few.err, Contains("2 of 3 hosts answer, fewer than --min-hosts 3"));
}

}  // namespace echelon
