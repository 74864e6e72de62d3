// SPDX-License-Identifier: Apache-2.0
// Decentralised exchange of compressed updates as a user runs it: on real ranks, with and without waiting, recorded,
// saved, resumed on other numbers of ranks.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::train_run;

test::Sets strom(const test::Sets& more = {}) {
  return test::with({"exchange.strategy=strom", "exchange.strom.density=0.05", "exchange.bucket_mb=0.01"}, more);
}

}  // namespace

TEST_CASE("3 ranks exchange entries in synchronous rounds, record what was sent, and resume to the same bits",
          "[run]") {
  const std::string topology = GENERATE(as<std::string>(), "all", "ring");
  const test::Sets sets = strom({"exchange.strom.topology=" + topology, "exchange.strom.warmup_steps=5"});
  const test::Trial trial;
  const test::TrainedRun whole = train_run(trial, "whole", {{3, {}, "entries beyond a tau of density 0.05"}}, sets);
  check_equal(train_run(trial, "cut", {{3, {"train.steps=23"}}, {3, {}, "from step 23:"}}, sets), whole, {.part = ""});
  CHECK(whole.summary()["test_accuracy"].get<double>() > 0.3);  // 51 steps that send few entries; chance: 0.1
  int coded = 0;
  double dense = 0;
  for (const auto& row : trial.metrics("whole")) {
    if (!row.contains("codec") || !row["codec"].is_object()) continue;
    const double density = row["codec"]["density"], bytes = row["codec"]["bytes_after"];
    if (++coded == 1) dense = bytes;
    CHECK((density == 1) == (coded <= 5));
    if (coded > 5) CHECK(bytes < dense / 5);
    if (coded > 5) CHECK(row["codec"]["tau"].get<double>() > 0);
  }
  CHECK(coded == 51);
}

TEST_CASE("residuals of decentralised exchange go on with another number of ranks", "[run]") {
  const std::string rounds = GENERATE(as<std::string>(), "synchronous", "asynchronous");
  const test::Trial trial;
  const test::TrainedRun run = train_run(trial, "trial",
                                         {{2, {"train.steps=10"}},
                                          {3, {"train.steps=20"}, "resuming on 3 replicas from a run of 2 replicas"},
                                          {1, {"train.epochs=20"}}},
                                         strom({"exchange.strom.rounds=" + rounds, "optimizer.momentum=0"}));
  CHECK(run.summary()["test_accuracy"].get<double>() > 0.5);
}

TEST_CASE("asynchronous decentralised replicas train to the end, by every way", "[run]") {
  const auto ways = GENERATE(test::Sets{}, test::Sets{"exchange.strom.topology=ring", "exchange.strom.indices=raw"},
                             test::Sets{"exchange.strom.tau=0.001", "exchange.strom.warmup_steps=10"});
  test::Sets sets = {"exchange.strategy=strom", "exchange.strom.rounds=asynchronous", "exchange.bucket_mb=0.01",
                     "optimizer.momentum=0", "train.epochs=20"};
  sets.insert(sets.end(), ways.begin(), ways.end());
  const test::Trial trial;
  const test::TrainedRun run = train_run(trial, "trial", {{3}}, sets);
  INFO(run.out);
  CHECK(run.summary()["test_accuracy"].get<double>() > 0.5);
  CHECK(run.summary()["updates_held"].get<double>() >= 0);
  CHECK(run.summary()["wire_bytes_per_step"].get<double>() > 0);
}

TEST_CASE("an asynchronous decentralised run is stopped by a signal to any replica, and goes on", "[run][slow]") {
  const test::Trial trial;
  const test::Sets sets = strom({"train.epochs=40", "exchange.strom.rounds=asynchronous", "optimizer.momentum=0"});
  const test::Outcome stopped = trial.train_and(3, sets, "running; kill -USR1 $(rank 2); wait $pid");
  INFO(stopped.out << stopped.err);
  REQUIRE(stopped.code == kExitRequeue);
  CHECK(trial.status()["step"] > 0);
  const test::TrainedRun resumed = train_run(trial, "trial", {{3, {}, "resuming  from step "}}, sets);
  CHECK(resumed.summary()["steps"] == 680);
  CHECK(resumed.summary()["test_accuracy"].get<double>() > 0.7);
}

TEST_CASE("what does not go with decentralised exchange is refused, with the reason", "[run]") {
  const test::Trial trial;
  for (const test::Sets& sets : {test::Sets{"exchange.codec=topk"},
                                 {"exchange.strom.rounds=asynchronous", "parallel.tensor=2"},
                                 {"exchange.strom.tau=0.1"},
                                 {"train.reproducible=true"}}) {
    const test::Outcome refused = trial.check(strom(sets), {"--ranks", "4"});
    INFO(sets.front() << "\n" << refused.out << refused.err);
    CHECK(refused.code == kExitConfig);
    CHECK_THAT(refused.err, Contains("strom"));
  }
  const test::Outcome unread = trial.check(strom({"exchange.algorithm=naive"}), {"--ranks", "4"});
  CHECK(unread.code == kExitConfig);
  CHECK_THAT(unread.err, Contains("exchange.algorithm is not used here"));
}

}  // namespace echelon
