// SPDX-License-Identifier: Apache-2.0
// Streams and buckets: which samples share a step, for every number of replicas.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "base/error.hpp"
#include "data/sample_plan.hpp"
#include "tests/support/random.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using Ids = std::vector<std::int64_t>;

SamplePlanRequest request(Ids files, Ids batch, Ragged ragged = Ragged::wrap) {
  SamplePlanRequest made;
  made.file_chunk_rows.assign(files.size(), 8);
  made.file_samples = std::move(files);
  made.batch = std::move(batch);
  made.ragged = ragged;
  made.seed = 7;
  made.window_chunks = 4;
  return made;
}

SamplePlanRequest streams(Ids files, Ids batch, Ragged ragged = Ragged::wrap) {
  SamplePlanRequest made = request(std::move(files), std::move(batch), ragged);
  made.stream = true;
  made.weight = 5;
  return made;
}

std::int64_t length_of(std::int64_t id) { return 1 + (id * id * 7 + id) % 23; }

SamplePlanRequest bucketed(Ids files, Ids batch, Ragged ragged = Ragged::wrap) {
  SamplePlanRequest made = request(std::move(files), std::move(batch), ragged);
  std::int64_t samples = 0;
  for (const std::int64_t n : made.file_samples) samples += n;
  auto lengths = std::make_shared<std::vector<std::int32_t>>();
  for (std::int64_t id = 0; id < samples; ++id) lengths->push_back(static_cast<std::int32_t>(length_of(id)));
  made.lengths = lengths;
  made.weights = lengths;  // as for pairs: one label per step
  made.buckets = {4, 9, 23};
  return made;
}

Ids ids_of(const std::vector<SampleSlot>& slots) {
  Ids ids;
  for (const SampleSlot& slot : slots) ids.push_back(slot.id);
  return ids;
}

}  // namespace

TEST_CASE("stream: a row reads on from step to step", "[data][plan][stream]") {
  const SamplePlan plan(streams({30, 30}, {4, 2}));
  REQUIRE(plan.sharding() == Sharding::record);
  REQUIRE(plan.steps_per_epoch() == 10);
  for (const std::int64_t epoch : {0, 3})
    for (std::int64_t step = 0; step < 10; ++step) {
      REQUIRE(ids_of(plan.ids(epoch, step, 0)) == Ids{step, 10 + step, 20 + step, 30 + step});
      REQUIRE(ids_of(plan.ids(epoch, step, 1)) == Ids{40 + step, 50 + step});
      REQUIRE(plan.weight(epoch, step) == 30);
      REQUIRE(plan.weight(epoch, step, 1) == 10);
    }
  REQUIRE((plan.owned(0) == 40 && plan.owned(1) == 20));
  REQUIRE(plan.coverage(0).once == 60);
}

TEST_CASE("streams at a ragged end", "[data][plan][stream]") {
  const SamplePlan wrap(streams({25}, {4})), drop(streams({25}, {4}, Ragged::drop)),
      zero(streams({25}, {4}, Ragged::zero_weight));
  REQUIRE((wrap.steps_per_epoch() == 7 && drop.steps_per_epoch() == 6 && zero.steps_per_epoch() == 7));
  REQUIRE(ids_of(wrap.ids(0, 6, 0)) == Ids{6, 13, 20, 2});
  REQUIRE((wrap.coverage(0).once == 22 && wrap.coverage(0).more == 3));
  REQUIRE((drop.coverage(0).once == 24 && drop.coverage(0).never == 1));
  REQUIRE((zero.coverage(0).once == 25 && zero.weight(0, 6) == 15 && zero.weight(0, 3) == 20));
  REQUIRE(zero.counting(0, 6) == 3);
}

TEST_CASE("streams and buckets hold the same ids for any number of replicas and any shares", "[data][plan]") {
  const bool stream = GENERATE(true, false);
  const auto ragged = GENERATE(Ragged::wrap, Ragged::drop, Ragged::zero_weight);
  const auto make = [&](Ids batch) {
    return SamplePlan(stream ? streams({37, 64, 90}, std::move(batch), ragged)
                             : bucketed({37, 64, 90}, std::move(batch), ragged));
  };
  const SamplePlan one = make({12});
  for (const Ids& batch : {Ids{6, 6}, Ids{3, 3, 3, 3}, Ids{1, 9, 2}}) {
    const SamplePlan many = make(batch);
    REQUIRE(many.steps_per_epoch() == one.steps_per_epoch());
    for (const std::int64_t epoch : {0, 1})
      for (std::int64_t step = 0; step < one.steps_per_epoch(); ++step) {
        REQUIRE(ids_of(many.all_ids(epoch, step)) == ids_of(one.all_ids(epoch, step)));
        REQUIRE(many.weight(epoch, step) == one.weight(epoch, step));
        REQUIRE(many.length(epoch, step) == one.length(epoch, step));
      }
  }
}

TEST_CASE("buckets: a step's sequences fit its length and no other's", "[data][plan][buckets]") {
  const auto ragged = GENERATE(Ragged::wrap, Ragged::drop, Ragged::zero_weight);
  const SamplePlan plan(bucketed({100, 91}, {5, 3}, ragged));
  std::map<std::int64_t, std::int64_t> held, steps;
  for (std::int64_t id = 0; id < 191; ++id) ++held[length_of(id) <= 4 ? 4 : length_of(id) <= 9 ? 9 : 23];
  std::set<Ids> orders;
  for (const std::int64_t epoch : {0, 1}) {
    Ids order;
    steps.clear();
    for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
      const std::int64_t length = plan.length(epoch, step), shorter = length == 4 ? 0 : length == 9 ? 4 : 9;
      ++steps[length];
      double weight = 0;
      for (const SampleSlot& slot : plan.all_ids(epoch, step)) {
        order.push_back(slot.id);
        REQUIRE((length_of(slot.id) <= length && length_of(slot.id) > shorter));
        weight += slot.counts ? static_cast<double>(length_of(slot.id)) : 0;
      }
      REQUIRE(plan.weight(epoch, step) == weight);
    }
    for (const auto& [length, count] : held)
      REQUIRE(steps[length] == (ragged == Ragged::drop ? count / 8 : (count + 7) / 8));
    const SamplePlan::Coverage seen = plan.coverage(epoch);
    REQUIRE(seen.never + seen.once + seen.more == 191);
    if (ragged == Ragged::zero_weight) REQUIRE(seen.once == 191);
    if (ragged == Ragged::wrap) REQUIRE(seen.never == 0);
    if (ragged == Ragged::drop) REQUIRE(seen.more == 0);
    orders.insert(order);
  }
  REQUIRE(orders.size() == 2);  // the order differs between epochs
}

TEST_CASE("a bucket that never fills is refused where the rest is dropped", "[data][plan][buckets]") {
  REQUIRE_THROWS_WITH(SamplePlan(bucketed({20}, {20}, Ragged::drop)),
                      Contains("do not fill one batch of 20 in any bucket"));
}

}  // namespace echelon
