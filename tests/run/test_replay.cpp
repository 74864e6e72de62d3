// SPDX-License-Identifier: Apache-2.0
// Replay as a user runs it: an asynchronous run of MPI ranks under random disturbances is repeated bit for bit from its
// recorded order of arrivals, under other disturbances and with threads; runs that cannot be repeated are refused.

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/error.hpp"
#include "comm/codec/codec.hpp"
#include "exchange/asynchronous/ledger_file.hpp"
#include "tests/run/compare.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Sets;

const Sets kAsynchronous = {"exchange.strategy=asynchronous", "exchange.bucket_mb=0.01"};

// Draws rules in any combination, under either strategy, with servers inside the workers or on the last rank and states
// on either side; half of the runs have a warm-up, a third have no tests and checkpoints before the end.
Sets random_rules(const std::string& name) {
  const std::vector<std::int64_t> draw = test::random_integers(14, 0, 1 << 20, name);
  Sets sets = kAsynchronous;
  const auto add = [&](std::int64_t drawn, const std::string& set) {
    if (drawn % 2 == 0) sets.push_back(set);
  };
  add(draw[0], "exchange.asynchronous.soft=2");
  add(draw[1], "exchange.asynchronous.drop_above=" + std::to_string(1 + draw[1] % 4));
  add(draw[2], "exchange.asynchronous.staleness_scale=0.7");
  if (draw[3] % 2 == 0) {
    sets.push_back("exchange.strategy=stale_synchronous");
    sets.push_back("exchange.stale_synchronous.bound=" + std::to_string(draw[3] / 2 % 5));
  }
  if (draw[4] % 2 == 0)
    sets.push_back("exchange.server.ranks=1");
  else
    sets.push_back("exchange.servers=" + std::to_string(1 + draw[4] / 2 % 3));
  add(draw[9], "exchange.asynchronous.states=server");
  add(draw[9] / 2, "exchange.asynchronous.memory=device");
  if (draw[10] % 2 == 0) {
    sets.push_back("exchange.asynchronous.delay_compensation=0.04");
    add(draw[11], "exchange.asynchronous.compensation_decay=0.9");
  }
  add(draw[5], "exchange.asynchronous.rate=sqrt");
  if (draw[6] % 2 == 0) {
    sets.push_back("exchange.warmup_replicas=" + std::to_string(1 + draw[7] % 2));
    sets.push_back("exchange.warmup_epochs=0.4");
    add(draw[7] / 2, "exchange.warmup_each_epoch=true");
  }
  if (draw[12] % 3 > 0) {
    const std::vector<std::string> codecs = codec_names();
    sets.push_back("exchange.codec=" + codecs[static_cast<std::size_t>(draw[13]) % codecs.size()]);
    add(draw[13] / 16, "exchange.codec_warmup_steps=5");
  }
  if (draw[8] % 3 == 0) {
    const Sets quiet = {"evaluate.every_epochs=0", "checkpoint.every_epochs=0", "checkpoint.every_steps=0"};
    sets.insert(sets.end(), quiet.begin(), quiet.end());
  }
  return sets;
}

// Stops a rank now and then, beginning shortly after the start.
std::string disturb(int rank) {
  return "sleep 0.4; for i in 1 2 3 4 5 6; do p=$(rank " + std::to_string(rank) +
         "); [ -n \"$p\" ] && kill -STOP $p && sleep 0.1 && kill -CONT $p; sleep 0.05; done; wait $pid";
}

struct Trained {
  test::TrainedRun run;
  std::string attempt;
};

Trained disturbed(const test::Trial& trial, const std::string& name, const Sets& sets, int rank) {
  const test::Outcome outcome = trial.train_and(3, test::with(sets, {"name=" + name}), disturb(rank));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  return {{trial, name, outcome.out}, trial.attempt(name)};
}

std::vector<std::string> words_of(const Sets& sets, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"train", "trial.toml"};
  words.insert(words.end(), more.begin(), more.end());
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  return words;
}

Trained on_threads(const test::Trial& trial, const std::string& name, const Sets& sets) {
  const test::Outcome outcome = trial.echelon(words_of(test::with(sets, {"name=" + name}), {"--local-ranks", "3"}));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  return {{trial, name, outcome.out}, trial.attempt(name)};
}

// Checks that the files of both attempts have the same orders.
void check_same_orders(const std::string& attempt, const std::string& expected) {
  int files = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string name = "/arrivals-000" + std::to_string(rank) + ".bin";
    REQUIRE(std::filesystem::exists(attempt + name) == std::filesystem::exists(expected + name));
    if (!std::filesystem::exists(expected + name)) continue;
    ++files;
    const LedgerFile file = read_ledger_file(attempt + name), other = read_ledger_file(expected + name);
    CHECK(file.orders == other.orders);
    CHECK(file.meetings == other.meetings);
    CHECK(file.lost_bytes == 0);
  }
  CHECK(files > 0);
}

}  // namespace

TEST_CASE("an asynchronous run is repeated bit for bit from its recorded order, on MPI and on threads",
          "[run][replay]") {
  const test::Trial trial;
  const Sets sets = random_rules("rules of a replay");
  CAPTURE(sets);
  const Trained recorded = disturbed(trial, "recorded", sets, 2);
  const Sets replay = test::with(sets, {"run.replay=" + recorded.attempt});
  const Trained on_mpi = disturbed(trial, "on_mpi", replay, 0);
  CHECK_THAT(on_mpi.run.out, Contains("replay    the order of "));
  test::check_equal(on_mpi.run, recorded.run, {.part = ""});
  check_same_orders(on_mpi.attempt, recorded.attempt);
  const Trained threads = on_threads(trial, "on_threads", replay);
  test::check_equal(threads.run, recorded.run, {.part = ""});
  check_same_orders(threads.attempt, recorded.attempt);
}

TEST_CASE("a recording that was stopped is repeated up to its end, and goes on with the next attempt",
          "[run][replay][slow]") {
  const test::Trial trial;
  const Sets sets =
      test::with(kAsynchronous, {"train.epochs=10", "exchange.asynchronous.soft=2", "exchange.codec=int8"});
  const test::Outcome stopped = trial.train_and(3, sets, "running; kill -USR1 $(rank 1); wait $pid");
  INFO(stopped.out << stopped.err);
  REQUIRE(stopped.code == kExitRequeue);
  const std::int64_t step = trial.status()["step"];
  const test::TrainedRun recorded = train_run(trial, "trial", {{3, {}, "resuming  from step "}}, sets);
  const Sets replay = test::with(sets, {"name=again", "run.replay=" + trial.run("trial")});
  const test::Outcome first = trial.train(3, replay);
  INFO(first.out << first.err);
  REQUIRE(first.code == kExitRequeue);
  CHECK(trial.status("again")["step"] == step);
  CHECK_THAT(first.out, Contains("it does not reach the end of the run"));
  const test::Outcome second = trial.train(3, replay);
  INFO(second.out << second.err);
  REQUIRE(second.code == 0);
  check_equal({trial, "again", second.out}, recorded, {.part = ""});
}

TEST_CASE("a recording that is cut off is repeated up to the last meeting that all servers wrote", "[run][replay]") {
  const test::Trial trial;
  // With these settings no worker can be at the end of the run before the last meeting but one.
  const Sets sets =
      test::with(kAsynchronous, {"exchange.strategy=stale_synchronous", "exchange.stale_synchronous.bound=2",
                                 "train.epochs=5", "evaluate.every_epochs=0", "checkpoint.keep=100"});
  const Trained recorded = on_threads(trial, "recorded", sets);
  const std::string torn = recorded.attempt + "/arrivals-0001.bin";
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(torn));
  std::filesystem::resize_file(torn, static_cast<std::uintmax_t>(bytes - test::random_integers(1, 1, 20, "cut")[0]));
  const Sets replay = test::with(sets, {"name=again", "run.replay=" + recorded.attempt});
  const test::Outcome outcome = trial.echelon(words_of(replay, {"--local-ranks", "3"}));
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitRequeue);
  CHECK_THAT(outcome.out, Contains("not whole blocks") && Contains("the recorded order of arrivals ends here"));
  const test::Outcome foreseen = trial.check(replay, {"--replicas", "3"});
  CHECK_THAT(foreseen.out + foreseen.err, Contains("has no attempt that began at step"));  // it would go on
  const std::string file = "/" + trial.status("again")["checkpoint"].get<std::string>();
  CHECK(file != "/" + trial.status("recorded")["checkpoint"].get<std::string>());
  const std::vector<double> values = test::checkpoint_values(trial.run("again") + file, "");
  CHECK(values.size() > 1000);
  CHECK(values == test::checkpoint_values(trial.run("recorded") + file, ""));
}

TEST_CASE("a replay refuses another config, other ranks, data and weights, and says which", "[run][replay]") {
  const test::Trial trial;
  const Sets sets = test::with(kAsynchronous, {"train.epochs=1", "evaluate.every_epochs=0", "name=recorded"});
  REQUIRE(trial.echelon(words_of(sets, {"--local-ranks", "3"})).code == 0);
  const std::string attempt = trial.attempt("recorded");
  const auto refused = [&](const Sets& more, const std::string& ranks, int code, const std::string& why) {
    const Sets all = test::with(sets, test::with({"name=other", "run.replay=" + attempt}, more));
    const test::Outcome outcome = trial.echelon(words_of(all, {"--local-ranks", ranks}));
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == code);
    CHECK_THAT(outcome.err, Contains(why) && Contains("error"));
  };
  refused({"seed=8"}, "3", kExitConfig, "seed = 8 (recorded: 7)");
  refused({"exchange.servers=1", "optimizer.momentum=0.5"}, "3", kExitConfig, "exchange.servers = 1 (recorded: 0)");
  refused({}, "2", kExitConfig, "2 workers (recorded: 3)");
  refused({"train.epochs=2"}, "3", kExitConfig, "34 steps in all (recorded: 17)");
  refused({"run.replay=" + (trial / "train")}, "3", kExitConfig, "holds no order of arrivals");
  refused({"data.train=test"}, "3", kExitConfig, "201 training samples (recorded: 800)");
  refused({"run.resume_from=" + trial.run("recorded"), "run.resume_weights_only=true"}, "3", kExitConfig,
          "different weights from those of this run");
  refused({"exchange.strategy=gossip"}, "3", kExitConfig, "step together have no order of arrivals");
  refused({"data.balance=queue"}, "3", kExitConfig, "which replica drew which batch is not recorded");
  const Sets repeated = test::with(sets, {"name=other", "run.replay=" + attempt});
  CHECK_THAT(trial.check(repeated, {"--replicas", "3"}).out, Contains("replay      the order of 51 updates"));
  CHECK_THAT(trial.check(repeated, {"--replicas", "2"}).err, Contains("2 workers (recorded: 3)"));
  std::filesystem::rename(attempt + "/arrivals-0001.bin", attempt + "/elsewhere.bin");
  refused({}, "3", kExitData, "3 ranks served, but 2 files");
}

}  // namespace echelon
