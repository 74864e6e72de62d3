// SPDX-License-Identifier: Apache-2.0
// Compares the rate that a run reports with arithmetic: ranks run at set paces, from which a strategy's true rate
// follows. A loaded machine is slower than its paces and never faster: there the rate may be lower, and is compared
// with the times of rank 0's own rows where all ranks step with it.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "tests/run/trial.hpp"

namespace echelon {
namespace {

using Catch::Contains;
using test::Sets;

constexpr double kPace_s = 0.04;  // forward and backward of a step
constexpr double kSlow = 2.5;     // factor on the pace of the slow rank
constexpr int kBatch = 12;        // samples per replica and step
constexpr int kSteps = 34;        // two epochs of the trial's data, with 48 samples a step
constexpr double kWithin = 0.03;  // relative error allowed in the rate
constexpr int kMostTries = 4;

// Returns the rows of steps.
std::vector<nlohmann::json> rows_of(const std::string& text) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (nlohmann::json row = nlohmann::json::parse(line); row["type"] == "step") rows.push_back(std::move(row));
  return rows;
}

struct Paced {
  std::string name;
  int ranks = 4;
  int slow = -1;  // -1: none
  Sets sets;
  // The true rate as a function of the ranks' paces.
  std::function<double(const std::vector<double>& pace_s)> samples_per_s;
  bool exact = true;     // false: only the least wait is known, so the rate is at most that
  bool together = true;  // a step of rank 0 is a step of all ranks, or they wait for it within the run
};

std::vector<double> paces_of(const Paced& paced) {
  std::vector<double> paces(static_cast<std::size_t>(paced.ranks), kPace_s);
  if (paced.slow >= 0) paces[static_cast<std::size_t>(paced.slow)] *= kSlow;
  return paces;
}

double slowest_s(const std::vector<double>& paces) { return *std::max_element(paces.begin(), paces.end()); }
double fastest_s(const std::vector<double>& paces) { return *std::min_element(paces.begin(), paces.end()); }

// Replicas wait for each other, in each step or now and then.
double together(const std::vector<double>& paces) {
  return kBatch * static_cast<double>(paces.size()) / slowest_s(paces);
}
// Each replica goes through its own shard; the time starts with the end of the fastest one's first step.
double by_themselves(const std::vector<double>& paces) {
  const double from_s = fastest_s(paces), to_s = kSteps * slowest_s(paces);
  double steps = 0;
  for (const double pace_s : paces) steps += kSteps - from_s / pace_s;
  return kBatch * steps / (to_s - from_s);
}
// Each replica draws the next batch when it can.
double drawn(const std::vector<double>& paces) {
  double rate = 0;
  for (const double pace_s : paces) rate += kBatch / pace_s;
  return rate;
}
// A step also has to wait `more_s` for something else.
auto together_with(double more_s) {
  return [=](const std::vector<double>& paces) {
    return kBatch * static_cast<double>(paces.size()) / (slowest_s(paces) + more_s);
  };
}

// Tells whether others use the machine, so that sleeping ranks wake up late. Except in the long form, other tests run
// at the same time.
bool is_crowded() {
  if (std::getenv("ECHELON_TEST_ALL") == nullptr) return true;
  double load = 0;
  return getloadavg(&load, 1) == 1 && load > std::max(1U, std::thread::hardware_concurrency());
}

struct Reported {
  nlohmann::json summary;
  double witness_s = 0;  // from the end of rank 0's first step to the end of its last, by its rows
  std::string out;
  double rate() const { return summary["samples_per_s"]["median"]; }
};

Reported run_once(const test::Trial& trial, const Paced& paced) {
  std::string factors;
  for (const double pace_s : paces_of(paced))
    factors += fmt::format("{}{}", factors.empty() ? "" : ", ", pace_s / kPace_s);
  const Sets sets = {"train.epochs=0",
                     fmt::format("train.steps={}", kSteps),
                     fmt::format("batch.global={}", kBatch * paced.ranks),
                     "checkpoint.every_steps=0",
                     "run.restart=never",
                     "device.threads=1",
                     fmt::format("device.pace_ms={}", 1e3 * kPace_s),
                     fmt::format("device.pace_factors=[{}]", factors)};
  const test::Outcome outcome = trial.train(paced.ranks, test::with(sets, paced.sets));
  INFO(paced.name << "\n" << outcome.out << outcome.err);
  REQUIRE(outcome.code == kExitOk);
  Reported reported{.summary = trial.summary(), .out = outcome.out};
  const std::vector<nlohmann::json> attempt = rows_of(read_file_whole(trial.attempt() + "/metrics.jsonl"));
  for (std::size_t i = 1; i < attempt.size(); ++i) {
    const auto &before = attempt[i - 1]["time"], &now = attempt[i]["time"];
    reported.witness_s += now["total"].get<double>() + before["hooks"].get<double>() - now["hooks"].get<double>() -
                          now["evaluation"].get<double>() - now["checkpoint"].get<double>();
  }
  return reported;
}

void check(const Paced& paced) {
  const test::Trial trial;
  const double expected = paced.samples_per_s(paces_of(paced));
  // The slowest rank may begin its last step when the others end theirs.
  const auto least_of = [&](const Reported& of) {
    return expected * (1 - slowest_s(paces_of(paced)) / of.summary["rate_s"].get<double>());
  };
  Reported reported;
  for (int tries = 0; tries < kMostTries; ++tries) {
    reported = run_once(trial, paced);
    if (!paced.exact || reported.rate() >= (1 - kWithin) * least_of(reported) || is_crowded()) break;
  }
  INFO(paced.name << ", slow rank " << paced.slow << "\n" << reported.out);
  CHECK(reported.rate() <= (1 + kWithin) * expected);
  if (paced.exact && !is_crowded()) CHECK(reported.rate() >= (1 - kWithin) * least_of(reported));
  if (paced.together) {
    const double samples = (kSteps - 1) * reported.summary["global_batch"].get<double>();
    // On a loaded machine even ranks that step together may end a second or two apart.
    CHECK(reported.rate() == Approx(samples / reported.witness_s).epsilon(is_crowded() ? 0.15 : kWithin));
  }
  CHECK_THAT(reported.out, Contains(rate_text(reported.rate()) + " samples/s ("));
}

// Strategies whose replicas wait for the slowest one sooner or later.
const std::vector<std::pair<std::string, Sets>> kTogether = {
    {"ring", {}},
    {"server", {"exchange.strategy=server"}},
    {"averaging", {"exchange.strategy=averaging", "exchange.averaging.period=4"}},
    {"elastic", {"exchange.strategy=elastic", "exchange.elastic.period=4"}},
    {"gossip", {"exchange.strategy=gossip"}},
    {"noloco", {"exchange.strategy=noloco"}},
    {"strom", {"exchange.strategy=strom", "exchange.strom.rounds=synchronous"}},
    {"balance by speed", {"data.balance=speed", "data.sharding=record"}},
    {"backup without any", {"exchange.strategy=backup", "exchange.backup.replicas=0"}}};

// Strategies whose replicas go through their shards by themselves.
const std::vector<std::pair<std::string, Sets>> kByThemselves = {
    {"asynchronous", {"exchange.strategy=asynchronous"}},
    {"soft", {"exchange.strategy=asynchronous", "exchange.asynchronous.soft=2"}},
    {"stale-synchronous", {"exchange.strategy=stale_synchronous"}},
    {"strom, asynchronous", {"exchange.strategy=strom", "exchange.strom.rounds=asynchronous"}}};

bool all_of_them() { return std::getenv("ECHELON_TEST_ALL") != nullptr; }

// Tests each strategy with one slow rank; long runs of the tests make each rank slow in turn.
void check_all(const std::vector<std::pair<std::string, Sets>>& strategies,
               const std::function<double(const std::vector<double>&)>& rate, bool wait) {
  constexpr int kRanks = 3;
  int next = 0;
  for (const auto& [name, sets] : strategies) {
    for (int slow = 0; slow < kRanks; ++slow)
      if (all_of_them() || slow == next % kRanks)
        check({.name = name, .ranks = kRanks, .slow = slow, .sets = sets, .samples_per_s = rate, .together = wait});
    ++next;
  }
}

}  // namespace

TEST_CASE("the rate of replicas that wait for each other is that of the slowest", "[run][slow][sampled][rates]") {
  check_all(kTogether, together, true);
}

TEST_CASE("the rate of replicas that step by themselves counts the time of the last one",
          "[run][slow][sampled][rates]") {
  check_all(kByThemselves, by_themselves, false);
}

TEST_CASE("the rate with backup workers is that of the run, not of rank 0", "[run][slow][rates]") {
  // The slow replica drops its gradients: its steps enter none, and the others wait for it only at the end of an epoch.
  for (int slow = 0; slow < 3; ++slow)
    check({.name = "backup",
           .ranks = 3,
           .slow = slow,
           .sets = {"exchange.strategy=backup", "exchange.backup.replicas=1", "exchange.backup.period=1000"},
           .samples_per_s = [](const std::vector<double>& paces) { return 2 * kBatch / fastest_s(paces); },
           .together = false});
}

TEST_CASE("the rate counts what averaging waits for messages", "[run][slow][rates]") {
  constexpr double kDelay_s = 0.06;
  constexpr double kPeriod = 4;
  for (const std::string strategy : {"averaging", "elastic"})
    check({.name = strategy + " with late messages",
           .ranks = 2,
           .slow = -1,
           .sets = {"run.allow_faults=true", "exchange.strategy=" + strategy,
                    fmt::format("exchange.{}.period={}", strategy, kPeriod),
                    fmt::format("fault.inject=[\"delay messages of rank 1 by {}ms\"]", 1e3 * kDelay_s)},
           .samples_per_s = together_with(kDelay_s / kPeriod),
           .exact = false});
}

TEST_CASE("the rate of drawn batches is the sum over replicas", "[run][slow][rates]") {
  check({.name = "queue",
         .ranks = 3,
         .slow = 1,
         .sets = {"exchange.strategy=asynchronous", "data.balance=queue", "data.sharding=record"},
         .samples_per_s = drawn,
         .together = false});
}

TEST_CASE("the rate of a run with servers on ranks of their own is that of its workers", "[run][slow][rates]") {
  for (const std::string strategy : {"server", "asynchronous"})
    check({.name = strategy + " on a rank of its own",
           .ranks = 3,
           .slow = -1,
           .sets = {"exchange.strategy=" + strategy, "exchange.server.ranks=1",
                    fmt::format("batch.global={}", 2 * kBatch), "device.pace_factors=[1, 1]"},
           .samples_per_s = [](const std::vector<double>& paces) { return 2 * kBatch / paces.front(); },
           .together = strategy == "server"});
}

TEST_CASE("the rate of a warm-up with few replicas counts the time in which the others wait", "[run][slow][rates]") {
  // One replica takes 12 steps alone; then all share the rest. Measured from the end of the first step on.
  check({.name = "warm-up",
         .ranks = 3,
         .slow = -1,
         .sets = {"exchange.strategy=asynchronous", "data.sharding=record", "exchange.warmup_replicas=1",
                  "exchange.warmup_steps=12"},
         .samples_per_s =
             [](const std::vector<double>& paces) {
               const double alone = 11, shared = kSteps - 12;
               return kBatch * (alone + 3 * shared) / ((alone + shared) * paces.front());
             },
         .together = false});
}

TEST_CASE("the rate of a split model counts each replica once", "[run][slow][rates]") {
  // With m micro-batches, two stages take (m + 1) / m times a stage's passes.
  constexpr int kMicros = 4;
  for (const std::string schedule : {"gpipe", "1f1b"})
    check({.name = "pipeline, " + schedule,
           .ranks = 2,
           .slow = -1,
           .sets = {"parallel.pipeline=2", "parallel.schedule=" + schedule, fmt::format("batch.global={}", kBatch),
                    fmt::format("batch.accumulation={}", kMicros)},
           .samples_per_s = [](const std::vector<double>& paces) {
             return kBatch * kMicros / ((kMicros + 1) * paces.front());
           }});
  check({.name = "tensor",
         .ranks = 2,
         .slow = -1,
         .sets = {"parallel.tensor=2", fmt::format("batch.global={}", kBatch)},
         .samples_per_s = [](const std::vector<double>& paces) { return kBatch / paces.front(); }});
  check({.name = "space",
         .ranks = 2,
         .slow = -1,
         .sets = {"parallel.space=2", fmt::format("batch.global={}", kBatch)},
         .samples_per_s = [](const std::vector<double>& paces) { return kBatch / paces.front(); }});
  check({.name = "two replicas of two",
         .ranks = 4,
         .slow = -1,
         .sets = {"parallel.tensor=2", fmt::format("batch.global={}", 2 * kBatch)},
         .samples_per_s = [](const std::vector<double>& paces) { return 2 * kBatch / paces.front(); }});
}

}  // namespace echelon
