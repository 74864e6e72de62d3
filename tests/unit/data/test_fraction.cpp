// SPDX-License-Identifier: Apache-2.0
// data.fraction: which samples a share of the data includes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "data/sample_plan.hpp"

namespace echelon {
namespace {

SamplePlanRequest request(std::vector<std::int64_t> batch, Sharding sharding, double fraction) {
  SamplePlanRequest made;
  made.file_samples = {37, 24, 40};
  made.file_chunk_rows = {8, 8, 8};
  made.batch = std::move(batch);
  made.sharding = sharding;
  made.ragged = Ragged::zero_weight;
  made.seed = 5;
  made.fraction = fraction;
  return made;
}

// Returns the samples of an epoch that count.
std::multiset<std::int64_t> trained(const SamplePlan& plan, std::int64_t epoch) {
  std::multiset<std::int64_t> ids;
  for (std::int64_t step = 0; step < plan.steps_in(epoch); ++step)
    for (const SampleSlot& slot : plan.all_ids(epoch, step))
      if (slot.counts) ids.insert(slot.id);
  return ids;
}

TEST_CASE("a share of the data is the same samples in every epoch and for every number of replicas", "[data]") {
  const auto sharding = GENERATE(Sharding::record, Sharding::file);
  const std::multiset<std::int64_t> alone = trained(SamplePlan(request({6}, sharding, 0.3)), 0);
  CHECK(alone.size() == 11 + 7 + 12);  // the share of each file, rounded
  CHECK(std::set<std::int64_t>(alone.begin(), alone.end()).size() == alone.size());
  for (const std::vector<std::int64_t>& batch : {std::vector<std::int64_t>{3, 3}, {2, 2, 2}, {1, 2, 2, 1}}) {
    const SamplePlan plan(request(batch, sharding, 0.3));
    CHECK(plan.samples() == 30);
    CHECK(plan.ids_end() == 101);
    for (const std::int64_t epoch : {0, 3}) CHECK(trained(plan, epoch) == alone);
    const SamplePlan::Coverage coverage = plan.coverage(0);
    CHECK(coverage.once == 30);
    CHECK(coverage.never == 0);
  }
}

TEST_CASE("by record, a step of a share has the same samples for every number of replicas", "[data]") {
  const SamplePlan one(request({6}, Sharding::record, 0.4)), three(request({2, 2, 2}, Sharding::record, 0.4));
  for (std::int64_t step = 0; step < one.steps_in(1); ++step) {
    const auto left = one.all_ids(1, step), right = three.all_ids(1, step);
    REQUIRE(left.size() == right.size());
    for (std::size_t i = 0; i < left.size(); ++i) CHECK(left[i].id == right[i].id);
  }
}

TEST_CASE("a smaller share of the data is part of a larger one, and another seed's is another", "[data]") {
  const auto held = [](double fraction, std::uint64_t seed) {
    SamplePlanRequest wanted = request({4}, Sharding::record, fraction);
    wanted.seed = seed;
    return trained(SamplePlan(wanted), 0);
  };
  const auto tenth = held(0.1, 5), half = held(0.5, 5), whole = held(1, 5);
  CHECK(tenth.size() == 4 + 2 + 4);
  CHECK(std::includes(half.begin(), half.end(), tenth.begin(), tenth.end()));
  CHECK(std::includes(whole.begin(), whole.end(), half.begin(), half.end()));
  CHECK(whole.size() == 101);
  CHECK(held(0.1, 6) != tenth);
  CHECK(held(1e-6, 5).size() == 3);  // one of each file
}

TEST_CASE("a share of a text is its beginning; sequences of a share keep their lengths and weights", "[data]") {
  SamplePlanRequest stream = request({4}, Sharding::record, 0.5);
  stream.stream = true;
  std::multiset<std::int64_t> first;
  for (std::int64_t id = 0; id < 51; ++id) first.insert(id);
  CHECK(trained(SamplePlan(stream), 0) == first);

  SamplePlanRequest sequences = request({2, 2}, Sharding::record, 0.5);
  std::vector<std::int32_t> lengths;
  for (std::int32_t id = 0; id < 101; ++id) lengths.push_back(1 + id % 9);
  sequences.lengths = sequences.weights = std::make_shared<const std::vector<std::int32_t>>(lengths);
  sequences.buckets = {3, 9};
  const SamplePlan plan(sequences);
  double weight = 0, expected = 0;
  for (std::int64_t step = 0; step < plan.steps_in(0); ++step) {
    weight += plan.weight(0, step);
    for (const SampleSlot& slot : plan.all_ids(0, step)) {
      const std::int32_t length = lengths[static_cast<std::size_t>(slot.id)];
      CHECK((plan.length(0, step) == 3) == (length <= 3));
      if (slot.counts) expected += length;
    }
  }
  CHECK(weight == expected);
  CHECK(trained(plan, 0).size() == 19 + 12 + 20);
}

}  // namespace
}  // namespace echelon
