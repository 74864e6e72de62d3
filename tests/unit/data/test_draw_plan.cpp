// SPDX-License-Identifier: Apache-2.0
// The batches that replicas draw from one queue: each sample once an epoch, whatever an earlier attempt left over.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "data/draw_plan.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

SamplePlan shards(std::vector<std::int64_t> files, std::vector<std::int64_t> batch, Ragged ragged) {
  SamplePlanRequest request;
  request.file_chunk_rows.assign(files.size(), 5);
  request.file_samples = std::move(files);
  request.batch = std::move(batch);
  request.ragged = ragged;
  request.sharding = Sharding::record;
  request.queue = true;
  return SamplePlan(request);
}

// By epoch: how often each sample counts.
using Counts = std::map<std::int64_t, std::vector<int>>;

void count(const DrawPlan& plan, std::int64_t number, Counts& counts) {
  const Draw draw = plan.at(number);
  std::vector<int>& seen = counts[draw.epoch];
  seen.resize(static_cast<std::size_t>(plan.samples()));
  const std::vector<SampleSlot> slots = plan.ids(draw);
  REQUIRE(std::ssize(slots) == plan.batch());
  std::int64_t counting = 0;
  for (const SampleSlot& slot : slots) {
    if (slot.counts) ++seen[static_cast<std::size_t>(slot.id)];
    counting += slot.counts ? 1 : 0;
  }
  REQUIRE(plan.counting(draw) == counting);
  REQUIRE(plan.weight(draw) == static_cast<double>(counting));
}

bool all_once(const std::vector<int>& seen) {
  return std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; });
}

}  // namespace

TEST_CASE("drawn batches are those of replicas in step, in the same order", "[data][draws]") {
  const SamplePlan in_step = shards({30, 17}, {4, 4, 4}, Ragged::zero_weight);
  const DrawPlan plan(in_step);
  for (std::int64_t number = 0; number < 24; ++number) {
    const Draw draw = plan.at(number);
    CHECK(draw.epoch == number / 12);
    CHECK(draw.step_in_epoch == draw.batch / 3);
    const auto drawn = plan.ids(draw), shared = in_step.ids(draw.epoch, draw.batch / 3, static_cast<int>(number % 3));
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      CHECK(drawn[i].counts == shared[i].counts);
      if (drawn[i].counts) CHECK(drawn[i].id == shared[i].id);
    }
  }
  CHECK(plan.weight_of_epoch(5) == 47);
}

TEST_CASE("an incomplete last batch wraps, is dropped, or is filled with samples that do not count", "[data][draws]") {
  for (const Ragged ragged : {Ragged::wrap, Ragged::drop, Ragged::zero_weight}) {
    const DrawPlan plan(shards({10}, {4, 4}, ragged));
    const std::int64_t batches = ragged == Ragged::drop ? 2 : 3;
    CHECK(plan.at(batches).epoch == 1);
    CHECK(plan.at(batches - 1).epoch == 0);
    CHECK(plan.at(batches - 1).step_in_epoch == (ragged == Ragged::drop ? 0 : 1));
    CHECK(plan.weight_of_epoch(0) == (ragged == Ragged::wrap ? 12 : ragged == Ragged::drop ? 8 : 10));
    Counts counts;
    for (std::int64_t number = 0; number < batches; ++number) count(plan, number, counts);
    const std::int64_t repeated = std::count(counts[0].begin(), counts[0].end(), 2);
    const std::int64_t missing = std::count(counts[0].begin(), counts[0].end(), 0);
    CHECK(repeated == (ragged == Ragged::wrap ? 2 : 0));
    CHECK(missing == (ragged == Ragged::drop ? 2 : 0));
  }
}

TEST_CASE("over attempts on any numbers of replicas each sample is trained once an epoch", "[data][draws]") {
  const HashRng random(test::test_seed(), "draws");
  for (std::uint64_t round = 0; round < 200; ++round) {
    HashRng rng = random.at(round);
    std::uint64_t draws = 0;
    const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(rng.below(draws++, bound)); };
    const std::vector<std::int64_t> files = {1 + below(30), 1 + below(9), 1 + below(50)};
    std::vector<OpenSamples> open;
    Counts counts;
    std::int64_t last_epoch = 0;
    for (int attempt = 0; attempt < 4; ++attempt) {
      const DrawPlan plan(
          shards(files, std::vector<std::int64_t>(static_cast<std::size_t>(1 + below(5)), 1 + below(12)),
                 Ragged::zero_weight),
          open);
      // Among `next` batches some are drawn but not trained, as those of slow replicas.
      const std::int64_t next = below(40);
      std::vector<std::int64_t> held;
      double weight = 0;
      std::int64_t step = 0;
      for (std::int64_t number = 0; number < next; ++number) {
        const Draw draw = plan.at(number);
        const std::int64_t at = draw.epoch * 1000 + draw.step_in_epoch;
        REQUIRE(at >= step);
        step = at;
        if (attempt < 3 && below(4) == 0)
          held.push_back(number);
        else
          count(plan, number, counts);
        weight += plan.weight(draw);
      }
      open = plan.open_after(next, held);
      last_epoch = open.back().epoch;
      REQUIRE(open.back().end == plan.samples());
      double epochs = 0;
      for (std::int64_t epoch = 0; epoch < plan.at(next).epoch; ++epoch) epochs += plan.weight_of_epoch(epoch);
      REQUIRE(epochs <= weight);
    }
    // One replica draws the rest.
    const DrawPlan rest(shards(files, {7}, Ragged::zero_weight), open);
    for (std::int64_t number = 0; rest.at(number).epoch <= last_epoch; ++number) count(rest, number, counts);
    REQUIRE(std::ssize(counts) == last_epoch + 1);
    for (const auto& [epoch, seen] : counts) {
      CAPTURE(round, epoch);
      REQUIRE(all_once(seen));
    }
  }
}

TEST_CASE("a queue may have fewer samples than replicas", "[data][draws]") {
  const DrawPlan plan(shards({2}, {1, 1, 1, 1, 1}, Ragged::wrap));
  CHECK(plan.at(1).epoch == 0);
  CHECK(plan.at(2).epoch == 1);
}

}  // namespace echelon
