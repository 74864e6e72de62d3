// SPDX-License-Identifier: Apache-2.0
// Warm-up with few replicas as a user runs it: n of k asynchronous workers train first, and the others join with the
// same weights. Each sample is read once an epoch, and a run stopped meanwhile can be resumed.

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "exchange/asynchronous/ledger_file.hpp"
#include "exchange/asynchronous/ledger_meetings.hpp"
#include "tests/run/compare.hpp"
#include "tests/support/random.hpp"
#include "train/control/calls.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Sets;

const Sets kAsynchronous = {"exchange.strategy=asynchronous", "exchange.bucket_mb=0.01"};

Sets warmup(const std::string& replicas, const std::string& length, const Sets& more = {}) {
  return test::with(test::with(kAsynchronous, {"exchange.warmup_replicas=" + replicas, "exchange." + length}), more);
}

test::Outcome on_threads(const test::Trial& trial, int ranks, const Sets& sets) {
  std::vector<std::string> words = {"train", "trial.toml", "--local-ranks", std::to_string(ranks)};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  const test::Outcome outcome = trial.echelon(words);
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome;
}

// Reads the order of arrivals at one piece.
LedgerFile order_of(const std::string& attempt, int rank = 0) {
  LedgerFile file = read_ledger_file(attempt + "/arrivals-000" + std::to_string(rank) + ".bin");
  while (!file.orders.empty() && file.orders.front().empty()) file.orders.erase(file.orders.begin());
  REQUIRE(!file.orders.empty());
  return file;
}

// The updates of each worker between two meetings, and the reasons of the meeting that ends the stretch.
struct Stretch {
  std::uint32_t reasons = 0;
  std::vector<std::int64_t> updates;
};
std::vector<Stretch> stretches_of(const LedgerFile& file) {
  std::vector<Stretch> all;
  std::vector<std::int64_t> before(static_cast<std::size_t>(file.header.workers));
  const std::vector<LedgerMeeting> meetings = meetings_of(file.orders.front(), static_cast<int>(file.header.workers));
  REQUIRE(meetings.size() == file.meetings.size());
  for (std::size_t m = 0; m < meetings.size(); ++m) {
    all.push_back({.reasons = file.meetings[m], .updates = meetings[m].updates});
    for (std::size_t w = 0; w < before.size(); ++w) all.back().updates[w] -= before[w];
    before = meetings[m].updates;
  }
  return all;
}

}  // namespace

TEST_CASE("the warm-up of one worker is one replica, in double", "[run][warmup]") {
  const test::Trial trial;
  for (const std::int64_t steps : test::random_integers(2, 3, 40, "steps of a warm-up")) {
    CAPTURE(steps);
    const Sets both = test::with(kAsynchronous, {"device.kind=reference", "device.dtype=f64", "evaluate.every_epochs=0",
                                                 "train.steps=" + std::to_string(steps), "optimizer.clip_norm=1"});
    const std::string suffix = std::to_string(steps);
    on_threads(trial, 1, test::with(both, {"name=one" + suffix, "batch.global=16"}));
    on_threads(trial, 3,
               test::with(both, {"name=warm" + suffix, "exchange.warmup_replicas=1",
                                 "exchange.warmup_steps=" + std::to_string(steps)}));
    test::check_equal({trial, "warm" + suffix, {}}, {trial, "one" + suffix, {}}, {.within = 1e-8});
    std::int64_t updates = 0;
    for (const Stretch& stretch : stretches_of(order_of(trial.attempt("warm" + suffix)))) {
      updates += stretch.updates[0];
      CHECK(stretch.updates[1] + stretch.updates[2] == 0);
    }
    CHECK(updates == steps);
  }
}

TEST_CASE("workers join after a warm-up with the same weights, once or at each epoch, and take the other steps",
          "[run][warmup]") {
  const test::Trial trial;
  const std::vector<std::int64_t> draw = test::random_integers(6, 0, 1000, "warm-ups");
  for (std::size_t i = 0; i < 2; ++i) {
    const bool each = i == 1;
    const std::int64_t workers = 2 + draw[3 * i] % 3, few = 1 + draw[3 * i + 1] % (workers - 1),
                       steps = 1 + draw[3 * i + 2] % 12;
    const std::string name = each ? "each" : "once";
    const Sets sets =
        warmup(std::to_string(few), "warmup_steps=" + std::to_string(steps),
               {"name=" + name, "exchange.warmup_each_epoch=" + std::string(each ? "true" : "false"), "train.epochs=4",
                "exchange.verify_every_steps=1", "evaluate.every_epochs=0", "data.ragged=zero_weight"});
    CAPTURE(workers, few, steps, each);
    const test::Outcome outcome = on_threads(trial, static_cast<int>(workers), sets);
    // With 800 samples, a warm-up step takes few * batch / workers of them and other steps 48.
    CHECK_THAT(outcome.out, Contains(fmt::format("warm-up   {} of {} replicas, for {} step", few, workers, steps)));
    const std::int64_t batch = 48 / workers * few, rest = (800 - steps * batch + 47) / 48;
    const std::int64_t epochs_with = each ? 4 : 1;
    const std::int64_t all = epochs_with * (steps + rest) + (4 - epochs_with) * 17;
    CHECK(trial.summary(name)["steps"] == all);
    std::vector<std::int64_t> trained(static_cast<std::size_t>(workers));
    std::int64_t joins = 0;
    bool first = true;
    for (const Stretch& stretch : stretches_of(order_of(trial.attempt(name)))) {
      for (std::size_t w = 0; w < trained.size(); ++w) {
        trained[w] += stretch.updates[w];
        if (first && static_cast<std::int64_t>(w) >= few) CHECK(stretch.updates[w] == 0);
      }
      joins += (stretch.reasons & kMeetingJoin) != 0;
      first = first && (stretch.reasons & kMeetingJoin) == 0;
    }
    CHECK(joins == epochs_with);
    for (std::int64_t w = 0; w < workers; ++w)
      CHECK(trained[static_cast<std::size_t>(w)] == all - (w < few ? 0 : epochs_with * steps));
  }
}

TEST_CASE("a run that is stopped in its warm-up resumes in it", "[run][warmup][slow]") {
  const test::Trial trial;
  const Sets sets = warmup("1", "warmup_epochs=12.5", {"train.epochs=16"});
  const test::Outcome stopped = trial.train_and(3, sets, "running; kill -USR1 $(rank 2); wait $pid");
  INFO(stopped.out << stopped.err);
  REQUIRE(stopped.code == kExitRequeue);
  const std::string first = trial.attempt();
  const std::int64_t step = trial.status()["step"];
  REQUIRE(step < 12 * 50);
  const test::TrainedRun resumed = train_run(trial, "trial", {{3, {}, "resuming  from step "}}, sets);
  // An epoch of the first replica alone has 50 steps; the shared epoch has 25 and 9.
  CHECK(resumed.summary()["steps"] == 12 * 50 + 25 + 9 + 3 * 17);
  std::int64_t alone = 0;
  for (const std::string& attempt : {first, trial.attempt()}) {
    bool joined = false;
    for (const Stretch& stretch : stretches_of(order_of(attempt))) {
      if (!joined) alone += stretch.updates[0];
      if (!joined) CHECK(stretch.updates[1] + stretch.updates[2] == 0);
      joined = joined || (stretch.reasons & kMeetingJoin) != 0;
    }
  }
  CHECK(alone > 0);
  CHECK(resumed.summary()["test_accuracy"].get<double>() > 0.7);
}

TEST_CASE("ranks that stand by for longer than the hang timeout are no hang, in a warm-up and in its replay",
          "[run][warmup][replay]") {
  const test::Trial trial;
  // One server and two workers, one of which stands by for 16 steps of 0.2 s.
  const Sets sets = warmup("1", "warmup_steps=16",
                           {"exchange.server.ranks=1", "device.pace_ms=200", "run.hang_timeout_s=2", "train.steps=18",
                            "evaluate.every_epochs=0"});
  on_threads(trial, 3, test::with(sets, {"name=recorded"}));
  const std::string attempt = trial.attempt("recorded");
  const std::vector<std::int64_t> alone = stretches_of(order_of(attempt, 2)).front().updates;
  CHECK((alone[0] >= 16 && alone[1] == 0));
  on_threads(trial, 3, test::with(sets, {"name=again", "run.replay=" + attempt}));
  test::check_equal({trial, "again", {}}, {trial, "recorded", {}}, {.part = ""});
}

TEST_CASE("a warm-up needs one order of all records", "[run][warmup]") {
  const test::Trial trial;
  const auto refuses = [&](const std::string& key, const std::string& why) {
    for (const std::string strategy : {"asynchronous", "stale_synchronous"}) {
      const Sets sets = warmup("1", "warmup_steps=3", {"exchange.strategy=" + strategy, key});
      const test::Outcome refused = trial.check(sets, {"--ranks", "3"});
      INFO(key << "\n" << refused.out << refused.err);
      CHECK(refused.code == kExitConfig);
      CHECK_THAT(refused.err, Contains(why));
    }
  };
  refuses("data.sharding=file", "one order of all records");
  refuses("data.sharding=replicated", "one order of all records");
  refuses("data.as_replicas=2", "deals samples by record");
  refuses("data.balance=queue", "a warm-up reserves steps for the first replicas");
}

}  // namespace echelon
