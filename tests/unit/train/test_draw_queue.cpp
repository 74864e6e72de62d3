// SPDX-License-Identifier: Apache-2.0
// The queue of batches with ranks as threads: loaders draw them, a meeting saves them, other ranks resume them.
#include <catch2/catch.hpp>
#include <map>

#include "base/check.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#include "train/draw_queue.hpp"

namespace echelon {
namespace {

constexpr std::int64_t kSamples = 61;

SamplePlan shards(int replicas, std::int64_t batch) {
  SamplePlanRequest request;
  request.file_samples = {40, 21};
  request.file_chunk_rows = {8, 8};
  request.batch.assign(static_cast<std::size_t>(replicas), batch);
  request.ragged = Ragged::zero_weight;
  request.sharding = Sharding::record;
  request.queue = true;
  return SamplePlan(request);
}

}  // namespace

TEST_CASE("ranks draw until an epoch is over, stop anywhere, and others train what is open", "[train][draws]") {
  const HashRng random(test::test_seed(), "queue");
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::mutex mutex;
    std::map<std::int64_t, int> times;  // keyed by epoch * kSamples + id
    std::vector<OpenSamples> open;
    bool resumed = false;
    for (const bool last : {false, false, true}) {
      const auto ranks = static_cast<int>(1 + random.at(round).below(last ? 1 : resumed ? 2 : 3, 4));
      const auto batch = static_cast<std::int64_t>(1 + random.at(round).below(last ? 4 : resumed ? 5 : 6, 9));
      const SamplePlan plan = shards(ranks, batch);
      test::run_ranks(ranks, [&](std::unique_ptr<Transport> transport) {
        Engine engine(std::move(transport));
        Group group(engine, 0);
        DrawQueue queue(engine, 1, plan, open, plan.steps_per_epoch(), 2 * plan.steps_per_epoch());
        const auto stop_after =
            static_cast<int>(last ? 1000 : random.at(round).below(10 + static_cast<std::uint64_t>(engine.rank()), 8));
        const int ahead = static_cast<int>(random.at(round).below(20, 3));
        std::vector<std::int64_t> drawn;
        for (int n = 0; n < stop_after + ahead; ++n) {
          const auto number = queue.next();
          if (!number) break;
          drawn.push_back(*number);
        }
        for (int n = 0; n < std::min<int>(stop_after, static_cast<int>(drawn.size())); ++n) {
          const Draw draw = queue.plan().at(drawn[static_cast<std::size_t>(n)]);
          const std::lock_guard lock(mutex);
          for (const SampleSlot& slot : queue.plan().ids(draw))
            if (slot.counts) ++times[draw.epoch * kSamples + slot.id];
          queue.trained();
        }
        std::vector<OpenSamples> left = queue.gather(group);
        queue.close();
        group.barrier();
        if (engine.rank() == 0) open = std::move(left);
      });
      resumed = true;
    }
    CAPTURE(round);
    REQUIRE(std::ssize(times) == 2 * kSamples);
    for (const auto& [sample, count] : times) REQUIRE(count == 1);
  }
}

TEST_CASE("ranks that train on at once change nothing of what is saved", "[train][draws]") {
  constexpr std::int64_t kBatch = 3, kRounds = 500, kRanks = 8, kEach = 2;
  const SamplePlan plan = shards(kRanks, kBatch);
  test::run_ranks(kRanks, [&](std::unique_ptr<Transport> transport) {
    Engine engine(std::move(transport));
    Group group(engine, 0);
    DrawQueue queue(engine, 1, plan, {}, plan.steps_per_epoch(), kEach * kRanks * kRounds);
    for (std::int64_t round = 1; round <= kRounds; ++round) {
      for (int n = 0; n < kEach; ++n) {  // the second request reports the first batch
        ECHELON_CHECK(queue.next().has_value());
        queue.trained();
      }
      const std::vector<OpenSamples> open = queue.gather(group);
      if (engine.rank() != 0) continue;
      const Draw next = queue.plan().at(kEach * kRanks * round);  // all batches before it are trained
      ECHELON_CHECK_EQ(open.empty() ? next.epoch : open.front().epoch, next.epoch);
      ECHELON_CHECK_EQ(open.empty() ? 0 : open.front().first, next.batch * kBatch);
    }
    queue.close();
    group.barrier();
  });
  SUCCEED();
}

}  // namespace echelon
