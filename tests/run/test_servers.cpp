// SPDX-License-Identifier: Apache-2.0
// Parameter servers on ranks of their own, as a user runs them: trained, saved, resumed on any number of servers, told
// apart in the reports, and named when they are gone.
#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <fstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "tests/run/compare.hpp"

namespace echelon {
namespace {

using Catch::Contains;

// Settings for this many servers, which are the last ranks.
test::Sets serving(int servers, test::Sets more = {}) {
  more.insert(more.begin(), {"exchange.strategy=server", "exchange.server.ranks=" + std::to_string(servers)});
  return more;
}

using test::check_equal;
using test::train_run;

TEST_CASE("2 workers and a server train, save, resume to the same bits and are told apart", "[run]") {
  const std::string codec = GENERATE(as<std::string>(), "none", "int8");
  const test::Trial trial;
  const test::Sets sets = serving(1, {"exchange.codec=" + codec, "optimizer.rule=adam", "optimizer.learning_rate=0.003",
                                      "exchange.bucket_mb=0.01"});
  const test::TrainedRun whole = train_run(trial, "whole", {{3, {}, "ranks     2 workers + 1 server on 1 host"}}, sets);
  const auto summary = whole.summary();
  CHECK(summary["ranks"] == 2);
  CHECK(summary["servers"] == 1);
  CHECK(summary["batch_per_replica"].size() == 2);
  CHECK(summary["test_accuracy"].get<double>() > 0.85);
  CHECK(summary["wire_bytes_per_step"] == summary["formula_bytes_per_step"]);
  if (codec == "none")
    CHECK(summary["formula_bytes_per_step"].get<double>() == 2 * 2 * 4 * summary["parameters"].get<double>());
  for (const auto& row : trial.metrics("whole"))
    if (row.contains("ranks_before")) CHECK(row["ranks_before"]["compute"].size() == 2);

  check_equal(train_run(trial, "cut", {{3, {"train.steps=23"}}, {3, {}, "from step 23:"}}, sets), whole, {.part = ""});
}

// Workers that are servers too hold a quarter of the weights each, and send nothing to themselves.
TEST_CASE("bytes up to servers and down to workers are told apart, on shared ranks too", "[run]") {
  const auto bytes = [](const test::Sets& sets) {
    const test::Trial trial;
    const test::Outcome outcome = trial.train(4, test::with(sets, {"train.epochs=0", "train.steps=8", "data.test="}));
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.code == 0);
    const auto summary = trial.summary();
    return std::array{summary["wire_bytes_per_step"].get<double>(), summary["down_bytes_per_step"].get<double>(),
                      4 * summary["parameters"].get<double>()};
  };
  const auto [server, down, weights] = bytes({"exchange.strategy=server"});
  CHECK(down == 3 * weights);
  CHECK(server == 6 * weights);
  const auto [pushed_and_answered, answered, all] = bytes({"exchange.strategy=asynchronous"});
  // Every push is answered, and after 8 steps the workers fetch all weights once more. Messages have short headers.
  CHECK(answered == Approx(3 * all * 9 / 8).epsilon(2e-3));
  CHECK(pushed_and_answered - answered == Approx(3 * all).epsilon(2e-3));
  CHECK(bytes({"exchange.algorithm=ring"})[1] == 0);
  CHECK(bytes({"exchange.strategy=backup", "exchange.backup.replicas=1"})[1] > 0);
}

TEST_CASE("a run goes on with another number of servers, and without any of their own", "[run]") {
  const test::Trial trial;
  const test::TrainedRun run =
      train_run(trial, "changing",
                {{3, serving(1, {"train.steps=10"})},
                 {4, serving(2, {"train.steps=20"}), "2 workers + 2 servers"},
                 {4, serving(1, {"train.steps=30"}), "resuming on 3 replicas from a run of 2 replicas"},
                 {2, serving(0)}});
  const test::TrainedRun plain = train_run(trial, "plain", {{2, serving(0)}});
  CHECK(run.summary()["servers"] == 0);
  CHECK(run.summary()["test_accuracy"].get<double>() > 0.85);
  CHECK(run.summary()["test_loss"].get<double>() == Approx(plain.summary()["test_loss"].get<double>()).epsilon(0.01));
}

TEST_CASE("workers that no longer agree are named, and servers end with them", "[run]") {
  const test::Trial trial;
  const test::Outcome outcome =
      trial.train(4, serving(1, {"exchange.verify_every_steps=5", "exchange.codec=bf16", "run.allow_faults=true"}),
                  {{"ECHELON_FAULT", "flip bit 0 of weight 20 of rank 1 at step 7"}});
  INFO(outcome.out << outcome.err);
  CHECK(!outcome.timed_out);
  CHECK(outcome.code == 5);
  CHECK_THAT(outcome.err, Contains("weights of rank 1 differ from those of most ranks after step 10"));
}

TEST_CASE("a loss that is not finite ends workers and servers with 5", "[run]") {
  const test::Trial trial;
  const test::Outcome outcome =
      trial.train(3, serving(1, {"optimizer.learning_rate=1000", "optimizer.weight_decay=1"}));
  INFO(outcome.out << outcome.err);
  CHECK(!outcome.timed_out);
  CHECK(outcome.code == 5);
}

TEST_CASE("impossible numbers of servers are refused with the nearest valid one", "[run]") {
  const test::Trial trial;
  const auto refused = [&](int ranks, const test::Sets& sets, const std::string& says) {
    const test::Outcome outcome = trial.train(ranks, sets);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains(says));
  };
  refused(2, serving(2), "exchange.server.ranks = 2 leaves no worker among 2 ranks; nearest valid: 1");
  refused(0, serving(1), "leaves no worker among 1 rank; start more ranks");
  refused(2, {"exchange.server.ranks=1"},
          "exchange.server.ranks is not used here: it is for exchange.strategy = \"server\"");
  refused(3, serving(1, {"exchange.servers=1"}), "servers inside the workers");
  refused(3, serving(1, {"train.reproducible=true", "batch.global=64"}), "nearest valid: \"synchronous\"");
}

TEST_CASE("a server that stops answering ends the job with 7, by name", "[run][slow]") {
  const test::Trial trial;
  const test::Outcome outcome = trial.train_and(3,
                                                serving(1, {"train.epochs=2000", "run.hang_timeout_s=1.5",
                                                            "checkpoint.every_epochs=0", "evaluate.every_epochs=0"}),
                                                "running; kill -STOP $(rank 2); wait $pid", 120);
  INFO(outcome.out << outcome.err);
  CHECK(!outcome.timed_out);
  CHECK(outcome.code == 7);
  CHECK_THAT(outcome.err, Contains("has been waiting"));
  // A worker may wait for the other worker, which waits for the server.
  CHECK_THAT(outcome.err, Contains("for rank 2") || Contains("the process of rank 2 on"));
}

TEST_CASE("a worker or a server that dies ends the job", "[run][slow]") {
  const int rank = GENERATE(0, 2);
  const test::Trial trial;
  const test::Outcome outcome =
      trial.train_and(3, serving(1, {"train.epochs=2000", "checkpoint.every_epochs=0", "evaluate.every_epochs=0"}),
                      fmt::format("running; kill -KILL $(rank {}); wait $pid", rank), 60);
  INFO(outcome.out << outcome.err);
  CHECK(!outcome.timed_out);
  CHECK(outcome.code != 0);
  CHECK_THAT(outcome.err + outcome.out, Contains("rank"));
  CHECK(trial.status()["state"] == "failed");
  CHECK(trial.status()["exit_code"] == kExitLostRank);
  CHECK_THAT(trial.status()["reason"].get<std::string>(),
             Contains(fmt::format("rank {} on ", rank)) && Contains("lost"));
}

TEST_CASE("a signal stops workers and servers with a checkpoint that the next attempt takes up", "[run][slow]") {
  const test::Trial trial;
  const test::Sets sets = serving(1, {"train.epochs=30", "checkpoint.every_steps=20"});
  const test::Outcome stopped = trial.train_and(3, sets, "reached 20; kill -USR1 $pid; wait $pid", 60);
  INFO(stopped.out << stopped.err);
  CHECK(!stopped.timed_out);
  CHECK(stopped.code == 75);
  const test::TrainedRun resumed = train_run(trial, "trial", {{3, {}, "resuming  from step"}}, sets);
  check_equal(resumed, train_run(trial, "whole", {{3}}, sets), {.part = ""});
}

TEST_CASE("check prints the roles of ranks and their bytes", "[run]") {
  const test::Trial trial;
  const test::Outcome outcome =
      trial.check({"exchange.strategy=server", "exchange.server.ranks=1"}, {"--replicas", "3"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("4 = 3 workers + 1 server on 1 host") && Contains("3 data-parallel replicas") &&
                              Contains("gradients pushed, weights pulled"));
  // The period of backup workers and asynchronous ones is that of meetings; they send at every step.
  for (const char* strategy : {"server", "backup", "asynchronous"}) {
    const test::Outcome plan = trial.check({fmt::format("exchange.strategy={}", strategy)}, {"--replicas", "3"});
    INFO(plan.out << plan.err);
    CHECK_THAT(plan.out, Contains("a step over all ranks"));
  }
}

}  // namespace
}  // namespace echelon
