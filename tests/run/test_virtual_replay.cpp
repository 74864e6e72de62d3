// SPDX-License-Identifier: Apache-2.0
// The order of arrivals that a run of MPI ranks recorded drives the protocol on virtual time: under any speeds and
// delays, updates applied in that order have the same staleness.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "exchange/asynchronous/ledger_file.hpp"
#include "exchange/asynchronous/ledger_meetings.hpp"
#include "tests/run/compare.hpp"
#include "tests/support/async_world.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using test::Sets;

struct Recording {
  test::AsyncSchedule schedule;
  std::vector<std::vector<LedgerBytes>> orders;  // by rank and bucket
};

// Takes the steps between meetings from the files; after the last meeting nobody pushes any more.
Recording recording_of(const std::string& attempt, const AsyncRules& rules) {
  Recording found;
  std::vector<LedgerMeeting> meetings;
  found.schedule.ranks = 0;  // the first file tells the number
  for (int rank = 0; rank == 0 || rank != found.schedule.ranks; ++rank) {
    const std::string path = attempt + "/arrivals-000" + std::to_string(rank) + ".bin";
    found.orders.emplace_back();
    if (!std::filesystem::exists(path)) {
      REQUIRE(rank < 8);
      continue;
    }
    LedgerFile file = read_ledger_file(path);
    REQUIRE(file.lost_bytes == 0);
    found.schedule.ranks = static_cast<int>(file.header.ranks);
    found.schedule.workers = static_cast<int>(file.header.workers);
    found.orders.back() = std::move(file.orders);
    for (const LedgerBytes& order : found.orders.back())
      if (!order.empty()) meetings = meetings_of(order, found.schedule.workers);
  }
  REQUIRE(!meetings.empty());
  test::AsyncSchedule& schedule = found.schedule;
  schedule.rules = rules;
  std::size_t buckets = 0;
  for (const auto& orders : found.orders) buckets = std::max(buckets, orders.size());
  for (auto& orders : found.orders) orders.resize(buckets);
  for (std::size_t b = 0; b < buckets; ++b) {
    Parts& parts = schedule.parts.emplace_back(static_cast<std::size_t>(schedule.ranks));
    for (std::size_t rank = 0, elem = 0; rank < parts.size(); ++rank)
      if (!found.orders[rank][b].empty()) {
        parts[rank] = {static_cast<std::int64_t>(elem), static_cast<std::int64_t>(elem + 1)};
        ++elem;
      }
  }
  schedule.steps.resize(static_cast<std::size_t>(schedule.workers));
  for (std::size_t w = 0; w < schedule.steps.size(); ++w) {
    std::int64_t before = 0;
    for (const LedgerMeeting& meeting : meetings) {
      schedule.steps[w].push_back(meeting.updates[w] - before);
      before = meeting.updates[w];
    }
    schedule.steps[w].push_back(0);
  }
  return found;
}

// Returns, by worker, the histogram of updates over staleness.
std::vector<nlohmann::json> histograms(const nlohmann::json& staleness) {
  std::vector<nlohmann::json> all;
  for (const nlohmann::json& worker : staleness["workers"]) all.push_back(worker["histogram"]);
  return all;
}
nlohmann::json histogram_of(const StalenessTally& worker) {
  nlohmann::json histogram = nlohmann::json::array();
  for (const auto& [staleness, updates] : worker.histogram) histogram.push_back({staleness, updates});
  return histogram;
}

}  // namespace

TEST_CASE("a recorded order of arrivals drives the protocol on virtual time, to the same staleness", "[run][replay]") {
  const auto [sets, rules] = GENERATE(table<Sets, AsyncRules>(
      {{{"exchange.strategy=asynchronous", "exchange.servers=2"}, {}},
       {{"exchange.strategy=asynchronous", "exchange.asynchronous.soft=2", "exchange.asynchronous.drop_above=1",
         "exchange.server.ranks=1"},
        {.soft = 2, .drop_above = 1}},
       {{"exchange.strategy=stale_synchronous", "exchange.stale_synchronous.bound=2"}, {.bound = 2}}}));
  const test::Trial trial;
  const Sets all =
      test::with(sets, {"exchange.bucket_mb=0.01", "train.epochs=4", "device.pace_ms=1", "device.pace_jitter=0.5",
                        "device.pace_factors=[1, 3]", "evaluate.every_epochs=0"});
  test::train_run(trial, "trial", {{3}}, all);
  const Recording recording = recording_of(trial.attempt(), rules);
  const nlohmann::json recorded = nlohmann::json::parse(read_file_whole(trial.attempt() + "/staleness.json"));
  for (const std::int64_t seed : test::random_integers(3, 1, 1 << 30, "virtual timing of a recorded run")) {
    CAPTURE(seed);
    test::AsyncSchedule schedule = recording.schedule;
    draw_async_timing(schedule, static_cast<std::uint64_t>(seed));
    test::AsyncOutcome repeated;
    REQUIRE_NOTHROW(repeated = run_async(schedule, recording.orders));
    for (std::size_t rank = 0; rank < recording.orders.size(); ++rank)
      for (std::size_t b = 0; b < recording.orders[rank].size(); ++b) {
        const LedgerBytes& order = recording.orders[rank][b];
        LedgerBytes taken = repeated.ledgers[rank][b];
        REQUIRE(taken.size() >= order.size());
        taken.resize(order.size());  // the recorded order ends here; then all are done
        CHECK(taken == order);
      }
    std::vector<nlohmann::json> found;
    for (const StalenessTally& worker : repeated.staleness) found.push_back(histogram_of(worker));
    CHECK(found == histograms(recorded));
  }
}

}  // namespace echelon
