// SPDX-License-Identifier: Apache-2.0
// Runs that went wrong although every step was done: they end with 5, or leave a warning in all their output.
#include <catch2/catch.hpp>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Sets;

const std::vector<std::pair<std::string, Sets>> kStrategies = {
    {"ring", {}},
    {"averaging", {"exchange.strategy=averaging", "exchange.averaging.period=8"}},
    {"elastic", {"exchange.strategy=elastic", "exchange.elastic.period=8"}},
    {"gossip", {"exchange.strategy=gossip", "exchange.gossip.consensus_every=50"}},
    {"noloco", {"exchange.strategy=noloco", "exchange.noloco.period=8", "exchange.noloco.consensus_every=50"}},
    {"strom, synchronous", {"exchange.strategy=strom", "exchange.strom.rounds=synchronous"}},
    {"strom, asynchronous", {"exchange.strategy=strom", "exchange.strom.rounds=asynchronous"}},
    {"server", {"exchange.strategy=server"}},
    {"backup", {"exchange.strategy=backup", "exchange.backup.replicas=1", "exchange.backup.period=50"}},
    {"asynchronous", {"exchange.strategy=asynchronous"}},
    {"soft", {"exchange.strategy=asynchronous", "exchange.asynchronous.soft=2"}},
    {"stale-synchronous", {"exchange.strategy=stale_synchronous", "exchange.stale_synchronous.bound=2"}},
    {"dedicated", {"exchange.strategy=asynchronous", "exchange.server.ranks=1"}},
    {"queue", {"exchange.strategy=asynchronous", "data.balance=queue"}}};

void check_ends(const Sets& more, const std::string& says) {
  const test::Trial trial;
  int number = 0;
  for (const auto& [name, sets] : kStrategies) {
    const std::string run = "name" + std::to_string(++number);
    const test::Outcome outcome = trial.train(3, test::with(test::with(more, sets), {"name=" + run}));
    INFO(name << "\n" << outcome.out << outcome.err);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.code == kExitNumeric);
    CHECK_THAT(outcome.err, Contains(says));
    CHECK(trial.status(run)["exit_code"] == kExitNumeric);
  }
}

}  // namespace

TEST_CASE("a run that diverges ends with 5 under every strategy, and no rank hangs", "[run][slow][failed]") {
  // The limit is a tenth of the first loss; every loss of the first 20 steps is above it.
  check_ends({"train.divergence_factor=0.1"}, "training diverges: the loss");
}

TEST_CASE("a rate a thousand times too high ends with 5 under every strategy", "[run][slow][sampled][failed]") {
  check_ends({"optimizer.learning_rate=1000", "train.epochs=10"}, "optimizer.learning_rate than 1000");
}

TEST_CASE("weights that never change are told, with the steps", "[run][failed]") {
  const test::Trial trial;
  int number = 0;
  for (const Sets& sets : std::vector<Sets>{{"optimizer.learning_rate=0"},
                                            {"exchange.codec=threshold", "exchange.tau=1000"},
                                            {"optimizer.learning_rate=0", "exchange.strategy=asynchronous"}}) {
    const std::string run = "name" + std::to_string(++number);
    const Sets named = test::with({"train.epochs=0", "train.steps=6", "name=" + run}, sets);
    const test::Outcome outcome = trial.train(2, named);
    INFO(sets.front() << "\n" << outcome.out << outcome.err);
    CHECK(outcome.code == kExitOk);
    const std::vector<std::string> findings = trial.summary(run).value("findings", std::vector<std::string>());
    REQUIRE(findings.size() == 1);
    CHECK_THAT(findings[0], Contains("no weight has changed in 6 steps"));
    CHECK_THAT(read_file_whole(trial.attempt(run) + "/run.log"), Contains("no weight has changed"));
    CHECK_THAT(trial.echelon({"report", "results/" + run}).out, Contains("no weight has changed"));
    const test::Outcome goal =
        trial.train(2, test::with(named, {"name=goal" + run, "goal.metric=test_accuracy", "goal.target=0.9"}));
    CHECK(goal.code == kExitUnmet);
  }
}

TEST_CASE("a run that learns has no findings", "[run][failed]") {
  const test::Trial trial;
  REQUIRE(trial.train(2).code == kExitOk);
  CHECK_FALSE(trial.summary().contains("findings"));
}

TEST_CASE("a threshold for gradients does not hold back the weights that servers answer", "[run][slow][failed]") {
  const test::Trial trial;
  const Sets coded = {"exchange.codec=threshold", "exchange.tau=0.3", "train.epochs=20"};
  const auto accuracy = [&](const std::string& strategy) {
    const test::Outcome outcome =
        trial.train(2, test::with(coded, {"exchange.strategy=" + strategy, "name=" + strategy}));
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == kExitOk);
    return trial.summary(strategy)["test_accuracy"].get<double>();
  };
  const double ring = accuracy("synchronous");
  for (const char* strategy : {"server", "asynchronous"}) CHECK(accuracy(strategy) > ring - 0.05);
}

}  // namespace echelon
