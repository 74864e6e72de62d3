// SPDX-License-Identifier: Apache-2.0
// Positions of replicas that step at their own pace: the rest of their shards is dealt to any number of other replicas.
#include "train/positions.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <mutex>

#include "base/hash_rng.hpp"
#include "tests/support/random.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/state_image.hpp"
#include "train/dealt_draws.hpp"

namespace echelon {
namespace {

constexpr std::int64_t kSamples = 61, kEpochs = 4;
using Times = std::map<std::int64_t, int>;  // keyed by epoch * kSamples + id

SamplePlan shards(std::vector<std::int64_t> batch, Sharding sharding) {
  SamplePlanRequest request;
  request.file_samples = {20, 21, 13, 7};
  request.file_chunk_rows = {8, 8, 8, 8};
  request.batch = std::move(batch);
  request.ragged = Ragged::zero_weight;
  request.sharding = sharding;
  return SamplePlan(request);
}

void count(Times& times, std::int64_t epoch, const std::vector<SampleSlot>& slots) {
  for (const SampleSlot& slot : slots)
    if (slot.counts) ++times[epoch * kSamples + slot.id];
}

}  // namespace

TEST_CASE("what replicas have left of their shards is trained once by others, in several attempts",
          "[train][positions]") {
  const HashRng random(test::test_seed(), "positions");
  for (std::uint64_t round = 0; round < 60; ++round) {
    CAPTURE(round);
    const HashRng draw = random.at(round);
    const auto below = [&](std::uint64_t at, std::uint64_t end) {
      return static_cast<std::int64_t>(draw.below(at, end));
    };
    const auto sharding = below(0, 2) == 0 ? Sharding::file : Sharding::record;
    std::vector<std::int64_t> batch(static_cast<std::size_t>(1 + below(1, 4)));
    for (std::size_t r = 0; r < batch.size(); ++r) batch[r] = 1 + below(2 + (below(3, 2) == 0 ? r : 0), 7);
    const SamplePlan were = shards(batch, sharding);
    Times times;
    std::vector<std::int64_t> steps;
    for (int r = 0; r < were.replicas(); ++r) {
      steps.push_back(
          below(10 + static_cast<std::uint64_t>(r), static_cast<std::uint64_t>(were.steps_before(kEpochs)) + 1));
      for (std::int64_t step = 0; step < steps.back(); ++step) {
        const Position at = position_at(were, step);
        count(times, at.epoch, were.ids(at.epoch, at.step_in_epoch, r));
      }
    }
    RunState state;
    state.replica_steps = steps;
    state.open = open_samples(were, steps, shards({1}, Sharding::record));
    for (const bool last : {false, true}) {
      const auto ranks = static_cast<int>(1 + below(last ? 31 : 30, 4));
      const SamplePlan records = shards(
          std::vector<std::int64_t>(static_cast<std::size_t>(ranks), 1 + below(last ? 33 : 32, 9)), Sharding::record);
      std::mutex mutex;
      std::vector<OpenSamples> open;
      test::run_ranks(ranks, [&](std::unique_ptr<Transport> transport) {
        Engine engine(std::move(transport));
        Group group(engine, 0);
        DealtDraws draws(engine.rank(), records, state.open, records.steps_per_epoch(),
                         kEpochs * records.steps_per_epoch());
        const std::int64_t stop = last ? 1000 : below(40 + static_cast<std::uint64_t>(engine.rank()), 12);
        for (std::int64_t n = 0; n < stop; ++n) {
          const auto number = draws.next();
          if (!number) break;
          const Draw drawn = draws.plan().at(*number);
          const std::lock_guard lock(mutex);
          count(times, drawn.epoch, draws.plan().ids(drawn));
          draws.trained();
        }
        std::vector<OpenSamples> left = draws.gather(group);
        if (engine.rank() == 0) open = std::move(left);
        group.barrier();
      });
      state.open = open;
    }
    REQUIRE(std::ssize(times) == kEpochs * kSamples);
    for (const auto& [sample, often] : times) REQUIRE(often == 1);
  }
}

TEST_CASE("the weight that is left until a step counts what each replica has done", "[train][positions]") {
  const HashRng random(test::test_seed(), "weights until");
  for (std::uint64_t round = 0; round < 40; ++round) {
    const SamplePlan plan = shards({3, 5, 2}, round % 2 == 0 ? Sharding::file : Sharding::record);
    RunState state;
    const std::int64_t all = plan.steps_before(3);
    for (std::uint64_t r = 0; r < 3; ++r)
      state.replica_steps.push_back(
          static_cast<std::int64_t>(random.at(round).below(r, static_cast<std::uint64_t>(all))));
    const auto until = static_cast<std::int64_t>(random.at(round).below(5, static_cast<std::uint64_t>(all)));
    const Position end = position_at(plan, until);
    const auto done = [&](std::int64_t steps, int replica) {
      double weight = 0;
      for (std::int64_t step = 0; step < steps; ++step) {
        const Position at = position_at(plan, step);
        weight += plan.weight(at.epoch, at.step_in_epoch, replica);
      }
      return weight;
    };
    double expected = 0;
    for (int r = 0; r < 3; ++r) expected += done(until, r) - done(state.replica_steps[static_cast<std::size_t>(r)], r);
    CHECK(weight_until(plan, state, end.epoch, end.step_in_epoch) == expected);
  }
}

TEST_CASE("positions of a run are saved and read back", "[train][positions]") {
  RunState state;
  state.step = 70, state.epoch = 3, state.step_in_epoch = 4, state.epochs_over = 2;
  state.replica_steps = {70, 41, 0};
  state.open = {{.epoch = 1, .first = 3, .end = 9}, {.epoch = 2, .first = 0, .end = 61}};
  test::StateImage image;
  state.visit_state(image);
  image.load();
  RunState again;
  again.visit_state(image);
  CHECK(again.step == 70);
  CHECK(again.epochs() == 2);
  CHECK(again.replica_steps == state.replica_steps);
  CHECK(again.open == state.open);
  CHECK(RunState{.epoch = 5}.epochs() == 5);
}

}  // namespace echelon
