// `echelon run`: launchers that hang, ranks that are all killed, hosts that go and come back.
#include <fmt/format.h>

#include <catch2/catch.hpp>

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

// The words of a shell that trains the trial under `launcher`.
std::string train_text(const std::string& launcher, const Sets& sets) {
  std::string text = launcher + " " + test::echelon_binary() + " train trial.toml";
  for (const std::string& set : sets) text += " --set " + set;
  return text;
}

// `echelon run options.. -- sh -c command` beside `script` (Trial::train_and), in which `ranks` prints the processes of
// this trial's ranks.
Outcome run_and(const Trial& trial, const std::string& options, const std::string& command, const std::string& script) {
  constexpr const char* kRanks = R"sh(ranks() {
  for p in $(pgrep -f "^[^ ]*echelon train trial.toml"); do
    [ "$(readlink /proc/$p/cwd)" = "$PWD" ] && echo $p
  done
}
)sh";
  return trial.in_background(fmt::format("{} run {} -- sh -c '{}' ", test::echelon_binary(), options, command),
                             kRanks + script);
}

std::string mpirun_text(const std::string& ranks) {
  return "exec mpirun --oversubscribe --allow-run-as-root --bind-to none -n " + ranks;
}

}  // namespace

TEST_CASE("a TERM to echelon run stops the ranks of mpirun with a checkpoint", "[run]") {
  const Trial trial;
  const std::string launch = train_text("mpirun --oversubscribe --allow-run-as-root --bind-to none -n 2", kSlow);
  const Outcome outcome = trial.in_background(
      fmt::format("{} run -- {} ", test::echelon_binary(), launch),
      "for i in $(seq 500); do ls results/*/run-*/checkpoints/step-*.h5 && break; sleep 0.02; done; kill -TERM $pid; "
      "wait $pid");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitRequeue);
  CHECK(trial.status()["exit_code"] == kExitRequeue);
  CHECK_THAT(trial.status()["reason"].get<std::string>(), Contains("checkpoint of step"));
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
  // A host answers where its file is there; its ranks are processes of this machine.
  const Outcome outcome = run_and(
      trial, "--hosts a,b,c --min-hosts 2 --restarts 3 --look 0.3 --probe \"test -e up-{host}\"",
      "echo on {hosts} {slots} {nodes}; " + train_text(mpirun_text("{ranks}"), kSlow),
      "touch up-a up-b up-c; reached 20; rm up-b; kill -9 $(ranks | tail -1); reached 60; touch up-b; wait $pid");
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == kExitOk);
  CHECK_THAT(outcome.out, Contains("on a,b,c a:1,b:1,c:1 3") && Contains("on a,c a:1,c:1 2"));
  CHECK_THAT(outcome.out, Contains("starts again on 2 of 3 hosts: a, c") && Contains("a lost host answers again") &&
                              Contains("starts again on 3 of 3 hosts: a, b, c"));
  CHECK(trial.attempts() == 3);
  CHECK(trial.summary()["steps"] == 17 * 12);
  CHECK(trial.summary()["ranks"] == 3);

  const Trial other;
  const Outcome few = run_and(other, "--hosts a,b,c --min-hosts 3 --restarts 3 --probe \"test -e up-{host}\"",
                              "true {hosts}; " + train_text(mpirun_text("{ranks}"), kSlow),
                              "touch up-a up-b up-c; reached 20; rm up-b; kill -9 $(ranks | tail -1); wait $pid");
  INFO(few.out << few.err);
  CHECK(few.code == kExitLostRank);
  CHECK_THAT(few.err, Contains("2 of 3 hosts answer, fewer than --min-hosts 3"));
}

}  // namespace echelon
