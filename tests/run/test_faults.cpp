// SPDX-License-Identifier: Apache-2.0
// Faults that every strategy must survive, or end in an orderly way: a rank that is slow, stopped or killed, data that
// ends early, one sample per shard or none, a loss that is not finite on one rank. Tests every strategy of the registry
// with its defaults. test_lost_worker.cpp tests runs that go on without lost workers.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <functional>
#include <future>

#include "base/error.hpp"
#include "config/traits/strategies.hpp"
#include "h5/file.hpp"
#include "tests/run/trial.hpp"
#include "tests/support/strategy_periods.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Outcome;
using test::Sets;
using test::Trial;
using test::with;

constexpr int kRanks = 3;
constexpr std::size_t kAtOnce = 4;  // runs at a time, whose ranks sleep most of the time

struct Way {
  std::string name;
  Sets sets;
};

// Returns all strategies, and variants that take another way through a run.
std::vector<Way> ways() {
  std::vector<Way> all;
  for (const StrategyTraits& strategy : kStrategies)
    all.push_back({std::string(strategy.name), {fmt::format("exchange.strategy={}", strategy.name)}});
  all.push_back({"synchronous, shared", {"exchange.algorithm=shared"}});
  all.push_back({"strom, asynchronous", {"exchange.strategy=strom", "exchange.strom.rounds=asynchronous"}});
  return all;
}

// Makes replicas meet rarely, so that a fast rank waits for long.
Sets meeting_rarely(const std::string& name) { return test::meeting_every(name, 20); }

// Calls `train` for each way on a trial of its own, a few at a time, and then `check` for each, in order.
void run_ways(const std::function<Outcome(const Way&, const Trial&)>& train,
              const std::function<void(const Way&, const Trial&, const Outcome&)>& check) {
  const std::vector<Way> all = ways();
  for (std::size_t begin = 0; begin < all.size(); begin += kAtOnce) {
    const std::size_t end = std::min(all.size(), begin + kAtOnce);
    std::vector<Trial> trials(end - begin);
    std::vector<std::future<Outcome>> outcomes;
    for (std::size_t i = begin; i < end; ++i)
      outcomes.push_back(std::async(std::launch::async, train, std::cref(all[i]), std::cref(trials[i - begin])));
    for (std::size_t i = begin; i < end; ++i) {
      const Outcome outcome = outcomes[i - begin].get();
      CAPTURE(all[i].name, outcome.out, outcome.err);
      CHECK_FALSE(outcome.timed_out);
      check(all[i], trials[i - begin], outcome);
    }
  }
}

// Trains with ranks as threads of one process, for tests that do not depend on processes.
Outcome train_threads(const Trial& trial, const Sets& sets) {
  std::vector<std::string> words = {"train", "trial.toml", "--local-ranks", std::to_string(kRanks)};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  return trial.echelon(words);
}

void check_finished(const Trial& trial, const Outcome& outcome, int epochs) {
  REQUIRE(outcome.code == kExitOk);
  CHECK(trial.status()["state"] == "finished");
  const auto loss = trial.summary()["train_loss"];  // null where the last samples were counted in the epoch before
  CHECK((loss.is_null() || std::isfinite(loss.get<double>())));
  int last = 0;
  for (const auto& row : trial.metrics())
    if (row["type"] == "epoch") CHECK(row["epoch"] == ++last);
  CHECK(last == epochs);
}

// Replaces the trial's files by f32 files with these numbers of samples, one of which may overflow f32's sums.
void write_files(const Trial& trial, const std::vector<std::int64_t>& samples, int file_of_largest = -1) {
  std::filesystem::remove_all(trial / "train");
  std::filesystem::create_directories(trial / "train");
  for (int file = 0; file < static_cast<int>(samples.size()); ++file) {
    const std::int64_t n = samples[static_cast<std::size_t>(file)];
    std::vector<float> pixels(static_cast<std::size_t>(n) * 64, 0.5F);
    if (file == file_of_largest) std::fill_n(pixels.begin() + 64 * (n / 2), 64, 3e38F);
    const std::vector<std::uint8_t> labels(static_cast<std::size_t>(n), 1);
    h5::Writer writer(trial / fmt::format("train/shard-{}.h5", file));
    writer.attribute("format", std::string("echelon-samples"));
    writer.attribute("version", std::int64_t{1});
    writer.attribute("classes", std::int64_t{10});
    writer.write_all("samples", DType::f32, {n, 1, 8, 8}, pixels.data(), {.chunk_rows = 64});
    writer.write_all("labels", DType::u8, {n}, labels.data(), {.chunk_rows = 64});
    writer.publish();
  }
}

}  // namespace

TEST_CASE("every strategy: a rank that is four times slower delays the others at most, though they wait for long",
          "[run][faults]") {
  const Sets sets = {"train.epochs=0",       "train.steps=20",    "evaluate.every_epochs=0",
                     "run.hang_timeout_s=2", "device.pace_ms=40", "device.pace_factors=[1,4,1]"};
  run_ways(
      [&](const Way& way, const Trial& trial) {
        return trial.train(kRanks, with(with(way.sets, meeting_rarely(way.name)), sets));
      },
      [](const Way&, const Trial& trial, const Outcome& outcome) {
        REQUIRE(outcome.code == kExitOk);
        CHECK(trial.status()["state"] == "finished");
        CHECK(trial.summary()["steps"] == 20);
      });
}

TEST_CASE("every strategy: a rank that is stopped ends the run with 7, by name", "[run][faults]") {
  const Sets sets = {"train.epochs=2000", "evaluate.every_epochs=0", "checkpoint.every_epochs=0",
                     "run.hang_timeout_s=2"};
  run_ways(
      [&](const Way& way, const Trial& trial) {
        return trial.train_and(kRanks, with(way.sets, sets), "running; kill -STOP $(rank 1); wait $pid", 60);
      },
      [](const Way&, const Trial& trial, const Outcome& outcome) {
        CHECK(outcome.code == kExitLostRank);
        CHECK(trial.status()["state"] == "failed");
        CHECK(trial.status()["exit_code"] == kExitLostRank);
        CHECK_THAT(outcome.err,
                   Contains("has been waiting") && Contains("process of rank 1 on ") && Contains("stopped"));
      });
}

TEST_CASE("every strategy: a rank that is killed ends the run with 7, by name", "[run][faults]") {
  const Sets sets = {"train.epochs=2000", "evaluate.every_epochs=0", "checkpoint.every_epochs=0"};
  run_ways(
      [&](const Way& way, const Trial& trial) {
        return trial.train_and(kRanks, with(way.sets, sets), "running; kill -KILL $(rank 1); wait $pid", 60);
      },
      [](const Way&, const Trial& trial, const Outcome& outcome) {
        CHECK(outcome.code != kExitOk);
        CHECK(trial.status()["state"] == "failed");
        CHECK(trial.status()["exit_code"] == kExitLostRank);
        CHECK_THAT(trial.status()["reason"].get<std::string>(), Contains("rank 1 on ") && Contains("was lost"));
      });
}

TEST_CASE("every strategy: data that ends early for some replicas", "[run][faults]") {
  const std::string ragged = GENERATE(as<std::string>(), "wrap", "drop", "zero_weight");
  const Sets sets = {"data.sharding=file", "data.ragged=" + ragged, "train.epochs=2"};
  CAPTURE(ragged);
  run_ways([&](const Way& way, const Trial& trial) { return train_threads(trial, with(way.sets, sets)); },
           [](const Way&, const Trial& trial, const Outcome& outcome) { check_finished(trial, outcome, 2); });
}

TEST_CASE("every strategy: one sample a shard, and steps in which some replicas have none", "[run][faults]") {
  const bool none = GENERATE(false, true);
  const Sets sets = {"batch.global=3", "train.epochs=5", none ? "data.ragged=zero_weight" : "data.sharding=file"};
  CAPTURE(none);
  run_ways(
      [&](const Way& way, const Trial& trial) {
        write_files(trial, none ? std::vector<std::int64_t>{2, 2} : std::vector<std::int64_t>{1, 1, 1});
        return train_threads(trial, with(way.sets, sets));
      },
      [&](const Way&, const Trial& trial, const Outcome& outcome) {
        check_finished(trial, outcome, 5);
        CHECK(trial.summary()["steps"] == (none ? 10 : 5));
      });
}

TEST_CASE("every strategy: a loss that is not finite on one rank ends all with 5", "[run][faults]") {
  const Sets sets = {"data.sharding=file", "data.test=\"\"", "train.epochs=20"};
  run_ways(
      [&](const Way& way, const Trial& trial) {
        write_files(trial, {60, 60, 60}, 1);
        return train_threads(trial, with(way.sets, sets));
      },
      [](const Way&, const Trial& trial, const Outcome& outcome) {
        CHECK(outcome.code == kExitNumeric);
        CHECK(trial.status()["state"] == "failed");
        CHECK(trial.status()["exit_code"] == kExitNumeric);
        CHECK_THAT(trial.status()["reason"].get<std::string>(), Contains("the loss is "));
      });
}

}  // namespace echelon
