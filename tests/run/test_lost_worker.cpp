// SPDX-License-Identifier: Apache-2.0
// Runs that go on without lost workers, under mpirun --enable-recovery: workers are killed or stopped from outside.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "config/traits/strategies.hpp"
#include "tests/run/trial.hpp"
#include "tests/support/random.hpp"
#include "tests/support/strategy_periods.hpp"

namespace echelon {
namespace {

using Catch::Contains;

// Sets mpirun --enable-recovery during its lifetime.
struct Recovery {
  Recovery() { ::setenv("OMPI_MCA_orte_enable_recovery", "1", 1); }
  ~Recovery() { ::unsetenv("OMPI_MCA_orte_enable_recovery"); }
};

test::Sets going_on(const std::string& strategy, const test::Sets& more = {}) {
  test::Sets sets = {"exchange.strategy=" + strategy, "exchange.bucket_mb=0.01", "run.on_lost_worker=continue",
                     "train.epochs=10", "checkpoint.every_steps=17"};
  if (strategy == "stale_synchronous" || strategy == "asynchronous") sets = test::with(sets, {"exchange.servers=1"});
  if (strategy == "strom") sets = test::with(sets, {"exchange.strom.density=0.1", "optimizer.momentum=0.5"});
  return test::with(test::with(sets, test::meeting_every(strategy, 5)), more);
}

std::vector<std::string> that_go_on() {
  std::vector<std::string> names;
  for (const StrategyTraits& strategy : kStrategies)
    if (strategy.goes_on_without) names.emplace_back(strategy.name);
  return names;
}

struct Losses {
  std::vector<int> ranks;  // ranks, of 4, that are lost
  std::string signal = "KILL";
  int steps = 170;  // steps of the whole run
};

// Steps that rank 0 has trained have one row each. It has not trained those between its own last step and the furthest
// one, from which all go on, nor those that `backup` lets it leave out. Replicas with a pace of their own may go on
// from the epoch of the slowest one, without the samples of it that were trained.
void check_rows(const test::Trial& trial, const nlohmann::json& summary, const Losses& losses) {
  const std::string strategy = summary["strategy"];
  const bool own_pace = strategy_traits(strategy).own_pace;
  std::int64_t before = 0, newest = 0, all = 0, lost_at = 0;
  std::sscanf(summary["provenance"]["lost_workers"][0].get<std::string>().c_str(), "%*[^,], at step %ld", &lost_at);
  CAPTURE(strategy, lost_at);
  bool first_attempt = true;
  for (const auto& row : trial.metrics()) {
    const std::int64_t step = row["step"];
    if (!own_pace) CHECK(step >= newest);
    newest = step;
    if (row["type"] != "step") continue;
    if (const bool next_attempt = own_pace && first_attempt && step != before + 1; next_attempt)
      first_attempt = false;
    else
      CHECK(step > before);
    if (!own_pace && strategy != "backup") CHECK((step == before + 1 || step == lost_at + 1));
    before = step, ++all;
  }
  CHECK(newest == losses.steps);
  if (!own_pace && strategy != "backup") CHECK(all > losses.steps / 2);
}

// Checks that the run ends by itself, complete, and names the ranks that it lost.
void check_goes_on(const test::Sets& sets, const Losses& losses) {
  const Recovery recovery;
  const test::Trial trial;
  std::string script = "reached 17; kill -" + losses.signal;
  for (const int rank : losses.ranks) script += fmt::format(" $(rank {})", rank);
  const test::Outcome run = trial.train_and(4, sets, script + "; wait $pid", 240);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  const auto status = trial.status(), summary = trial.summary();
  CHECK(status["state"] == "finished");
  CHECK(status["exit_code"] == 0);
  CHECK(summary["steps"] == losses.steps);
  CHECK(summary["ranks"] == 4 - losses.ranks.size());
  CHECK(summary["test_accuracy"].get<double>() > 0.7);
  REQUIRE(summary["provenance"]["lost_workers"].size() == losses.ranks.size());
  CHECK(status["provenance"]["lost_workers"] == summary["provenance"]["lost_workers"]);
  for (std::size_t i = 0; i < losses.ranks.size(); ++i) {
    const std::string name = fmt::format("rank {} on ", losses.ranks[i]);
    CHECK_THAT(summary["provenance"]["lost_workers"][i].get<std::string>(), Contains(name) && Contains(", at step "));
    CHECK_THAT(run.err, Contains(name));
  }
  CHECK_THAT(run.err, Contains("continuing with ") && Contains("lost at step "));
  CHECK(trial.leftovers().empty());
  const auto first = nlohmann::json::parse(read_file_whole(trial.run() + "/01/status.json"));
  CHECK(first["state"] == "stopped");
  CHECK_THAT(first["reason"].get<std::string>(), Contains("continuing with"));
  check_rows(trial, summary, losses);
}

}  // namespace

TEST_CASE("a worker that is killed does not end the run", "[run][lost][sampled]") {
  for (const std::string& strategy : test::sampled(that_go_on(), 3, "strategies")) {
    CAPTURE(strategy);
    check_goes_on(going_on(strategy), {{3}});
  }
}

TEST_CASE("several workers that are killed at once do not end the run", "[run][lost][sampled]") {
  using Case = std::pair<std::string, std::vector<int>>;
  const std::vector<Case> all = {{"stale_synchronous", {1, 2}},
                                 {"gossip", {0, 2}},
                                 {"averaging", {1, 2, 3}},
                                 {"backup", {0, 2}},
                                 {"strom", {1, 2, 3}}};
  for (const auto& [strategy, ranks] : test::sampled(all, 1, "losses")) {
    CAPTURE(strategy, ranks);
    check_goes_on(going_on(strategy), {ranks});
  }
}

// The remaining ranks agree on the first loss within about a second and begin the next attempt; the second loss comes
// before, during or after that.
TEST_CASE("a loss while the run is handed over is another loss", "[run][lost][sampled]") {
  const Recovery recovery;
  std::vector<std::pair<std::string, std::string>> all;
  for (const char* const strategy : {"averaging", "elastic"})
    for (const char* const apart_s : {"0", "0.05", "0.1", "0.2", "0.3", "0.4", "0.5"})
      all.emplace_back(strategy, apart_s);
  for (const auto& [strategy, apart_s] : test::sampled(all, 1, "hand-overs")) {
    CAPTURE(strategy, apart_s);
    const test::Trial trial;
    const std::string script =
        "reached 17; a=$(rank 3); b=$(rank 1); kill -KILL $a; sleep " + apart_s + "; kill -KILL $b; wait $pid";
    // Longer than the time between the losses on any processor.
    const test::Outcome run = trial.train_and(4, test::with(going_on(strategy), {"train.epochs=60"}), script, 240);
    INFO(run.out << run.err);
    const auto status = trial.status();
    INFO(status.dump(1));
    const bool goes_on = status["exit_code"] == kExitOk;
    CHECK(status["state"] == (goes_on ? "finished" : "failed"));
    CHECK((goes_on || status["exit_code"] == kExitLostRank));
    if (goes_on) CHECK(status["provenance"]["lost_workers"].size() == 2);
    CHECK_THAT(run.err, !Contains("expected ") || !Contains("Read -1"));  // reading memory of a process that is gone
    CHECK(trial.leftovers().empty());
  }
}

TEST_CASE("a batch that does not divide by the workers that are left is cut into nearly equal parts", "[run][lost]") {
  check_goes_on(going_on("gossip", {"batch.global=44"}), {.ranks = {3}, .steps = 190});
}

TEST_CASE("a worker that stands still is given up after the timeout", "[run][lost][sampled]") {
  for (const std::string& strategy : test::sampled(that_go_on(), 1, "strategies")) {
    CAPTURE(strategy);
    check_goes_on(going_on(strategy, {"run.hang_timeout_s=3"}), {{2}, "STOP"});
  }
}

TEST_CASE("a server that is lost ends the run with 7, and the same command resumes", "[run][lost]") {
  const Recovery recovery;
  const test::Trial trial;
  const test::Sets sets = going_on("stale_synchronous");
  // A third checkpoint is due, so the first one, which is written beside training, is complete.
  const test::Outcome ended = trial.train_and(4, sets, "reached 51; kill -KILL $(rank 0); wait $pid", 240);
  INFO(ended.out << ended.err);
  CHECK(trial.status()["state"] == "failed");
  CHECK(trial.status()["exit_code"] == kExitLostRank);
  CHECK_THAT(trial.status()["reason"].get<std::string>(),
             Contains("rank 0 on ") && Contains("lost, and with it a part of the weights"));
  CHECK(trial.attempts() == 1);
  const test::Outcome resumed = trial.train(4, sets);
  INFO(resumed.out << resumed.err);
  REQUIRE(resumed.code == 0);
  CHECK_THAT(resumed.out, Contains("resuming  from step "));
  CHECK(trial.status()["state"] == "finished");
}

TEST_CASE("continuing without lost workers is refused where a step needs all of them", "[run][lost]") {
  const test::Trial trial;
  const auto refused = [&](const test::Sets& sets, const std::string& why) {
    const test::Outcome outcome = trial.check(test::with({"run.on_lost_worker=continue"}, sets), {"--ranks", "4"});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == kExitConfig);
    CHECK_THAT(outcome.err, Contains("on_lost_worker") && Contains(why));
  };
  refused({}, "takes the gradients of all workers");
  refused({"exchange.strategy=averaging", "parallel.pipeline=2"}, "a split model is incomplete");
  refused({"exchange.strategy=gossip", "exchange.algorithm=mpi"}, "all ranks that it was started with");
  refused({"exchange.strategy=elastic", "exchange.codec=topk"}, "rounding errors");
  refused({"exchange.strategy=gossip", "batch.shares=[1,2,2,1]"}, "divided again");
}

}  // namespace echelon
