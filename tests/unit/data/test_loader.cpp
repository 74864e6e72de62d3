// SPDX-License-Identifier: Apache-2.0
// Batches hold what the plan says, for any storage and sharding, wherever reading starts.
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "data/loader.hpp"
#include "tests/unit/data/shards.hpp"
#include "tests/unit/h5/folder.hpp"

namespace echelon {
namespace {

using Catch::Matchers::Contains;
using test::ShardSpec;

SamplePlan plan_of(const Dataset& dataset, std::vector<std::int64_t> batch, Sharding sharding = Sharding::record,
                   Ragged ragged = Ragged::wrap) {
  DataConfig config;
  config.sharding = sharding;
  config.ragged = ragged;
  config.window_chunks = 2;
  return SamplePlan(plan_request(dataset, config, std::move(batch), 5));
}

// Returns the largest error of a batch against values computed from the ids.
template <class Real>
double error_of(const Batch& batch, const std::vector<SampleSlot>& ids, const Dataset& dataset) {
  const auto* samples = static_cast<const Real*>(batch.samples);
  const auto* weights = static_cast<const Real*>(batch.weights);
  const std::int64_t pixels = dataset.sample_shape.elems(), plane = pixels / dataset.sample_shape[0];
  double worst = batch.n == static_cast<std::int64_t>(ids.size()) ? 0 : INFINITY, weight = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (static_cast<const std::int32_t*>(batch.labels)[i] != test::label_of(ids[i].id)) return INFINITY;
    if (weights[i] != (ids[i].counts ? 1 : 0)) return INFINITY;
    if (batch.ids[i] != ids[i].id) return INFINITY;
    weight += ids[i].counts ? 1 : 0;
    for (std::int64_t p = 0; p < pixels; ++p) {
      const auto c = static_cast<std::size_t>(p / plane);
      const double wanted = (test::pixel_of(ids[i].id, p) * dataset.scale - dataset.mean[c]) / dataset.std[c];
      worst =
          std::max(worst, std::fabs(wanted - static_cast<double>(samples[static_cast<std::int64_t>(i) * pixels + p])));
    }
  }
  return weight == batch.weight ? worst : INFINITY;
}

ShardSpec coloured(DType stored, int deflate) {
  ShardSpec spec;
  spec.sample = {2, 3, 5};
  spec.stored = stored;
  spec.options = {.chunk_rows = 16, .deflate = deflate};
  spec.attributes = [](h5::Writer& writer) {
    writer.attribute("mean", std::vector<double>{0.4, 0.6});
    writer.attribute("std", std::vector<double>{0.25, 2});
  };
  return spec;
}

}  // namespace

TEST_CASE("batches equal what the plan's ids say", "[data][loader]") {
  const auto stored = GENERATE(DType::u8, DType::f32);
  const int deflate = GENERATE(0, 2);
  const auto sharding = GENERATE(Sharding::record, Sharding::file, Sharding::replicated);
  const auto ragged = GENERATE(Ragged::wrap, Ragged::zero_weight);
  const test::Folder folder;
  test::write_shards(folder.path(), {100, 37, 260}, coloured(stored, deflate));
  const Dataset dataset = open_dataset(folder.path());
  const SamplePlan plan = plan_of(dataset, {13, 7}, sharding, ragged);
  const auto dtype = GENERATE(DType::f32, DType::f64);
  for (const int replica : {0, 1}) {
    Loader loader(dataset, plan, {.replica = replica, .dtype = dtype, .buffer_bytes = 1, .end_epoch = 2});
    for (std::int64_t epoch = 0; epoch < 2; ++epoch)
      for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
        const Batch& batch = loader.next();
        const auto ids = plan.ids(epoch, step, replica);
        REQUIRE((batch.epoch == epoch && batch.step == step));
        REQUIRE((dtype == DType::f64 ? error_of<double>(batch, ids, dataset) < 1e-12
                                     : error_of<float>(batch, ids, dataset) < 2e-3));
        REQUIRE(reinterpret_cast<std::uintptr_t>(batch.samples) % 64 == 0);
      }
  }
}

TEST_CASE("one replica can take the samples of all replicas (as_replicas)", "[data][loader]") {
  const test::Folder folder;
  test::write_shards(folder.path(), {40, 20});
  const Dataset dataset = open_dataset(folder.path());
  const SamplePlan plan = plan_of(dataset, {4, 4, 2}, Sharding::file);
  Loader loader(dataset, plan, {.all_replicas = true});
  for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    const Batch& batch = loader.next();
    REQUIRE(batch.n == 10);
    REQUIRE(error_of<float>(batch, plan.all_ids(0, step), dataset) < 1e-4);
  }
}

TEST_CASE("reading starts anywhere and gives what it would have given", "[data][loader]") {
  const test::Folder folder;
  test::write_shards(folder.path(), {100, 60});
  const Dataset dataset = open_dataset(folder.path());
  const SamplePlan plan = plan_of(dataset, {16});
  const std::int64_t steps = plan.steps_per_epoch();
  for (const std::int64_t start : {std::int64_t{0}, std::int64_t{3}, steps}) {
    Loader loader(dataset, plan, {.start_epoch = 4, .start_step = start});
    for (std::int64_t at = start; at < steps + 2; ++at) {
      const Batch& batch = loader.next();
      REQUIRE((batch.epoch == 4 + at / steps && batch.step == at % steps));
      REQUIRE(error_of<float>(batch, plan.ids(batch.epoch, batch.step, 0), dataset) < 1e-4);
    }
  }
}

TEST_CASE("steps that are skipped are left out, read ahead or not", "[data][loader]") {
  const test::Folder folder;
  test::write_shards(folder.path(), {100, 60});
  const Dataset dataset = open_dataset(folder.path());
  const SamplePlan plan = plan_of(dataset, {16});
  const std::int64_t steps = plan.steps_per_epoch();
  for (const int prefetch : {1, 4}) {
    Loader loader(dataset, plan, {.prefetch = prefetch});
    for (const std::int64_t at : std::initializer_list<std::int64_t>{0, 1, 2, 7, 8, steps - 1, steps + 3, 5 * steps}) {
      const Batch& batch = loader.at(at / steps, at % steps);
      REQUIRE((batch.epoch == at / steps && batch.step == at % steps));
      REQUIRE(error_of<float>(batch, plan.ids(batch.epoch, batch.step, 0), dataset) < 1e-4);
    }
    REQUIRE_THROWS_WITH(loader.at(0, 0), Contains("step 0 of epoch 0 was requested"));
  }
}

TEST_CASE("a label out of range names file and record", "[data][loader]") {
  const test::Folder folder;
  ShardSpec spec;
  spec.classes = 9;  // labels go up to 9
  test::write_shards(folder.path(), {5, 30}, spec);
  const Dataset dataset = open_dataset(folder.path());
  Loader loader(dataset, plan_of(dataset, {35}), {});
  REQUIRE_THROWS_WITH(loader.next(), Contains("a1.h5: record 4 has label 9, must be 0 to 8"));
  REQUIRE_THROWS_AS(loader.next(), DataError);  // every call fails
}

TEST_CASE("bytes read are near bytes used while windows are read through", "[data][loader]") {
  const test::Folder folder;
  const int deflate = GENERATE(0, 1);
  test::write_shards(folder.path(), {640, 640}, coloured(DType::u8, deflate));
  const Dataset dataset = open_dataset(folder.path());
  const SamplePlan plan = plan_of(dataset, {32});
  Loader loader(dataset, plan, {.end_epoch = 1});
  for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) loader.next();
  const double read = static_cast<double>(loader.bytes_read()), used = static_cast<double>(loader.bytes_used());
  REQUIRE(read > 0);
  REQUIRE(read == Approx(used).epsilon(0.1));
  if (deflate == 0) REQUIRE(loader.bytes_read() == 1280 * 31);
}

TEST_CASE("a file that goes away or bad while it is read surfaces in next()", "[data][loader]") {
  const test::Folder folder;
  test::write_shards(folder.path(), {64, 64});
  const Dataset dataset = open_dataset(folder.path());
  const SamplePlan plan = plan_of(dataset, {16}, Sharding::record);
  SECTION("gone") {
    std::filesystem::remove(folder / "a1.h5");
    Loader loader(dataset, plan, {});
    REQUIRE_THROWS_WITH(
        [&] {
          for (int i = 0; i < 8; ++i) loader.next();
        }(),
        Contains("a1.h5: cannot be read"));
  }
  SECTION("another") {
    ShardSpec spec;
    spec.samples = 65;
    test::write_shard(folder / "a1.h5", spec);
    Loader loader(dataset, plan, {});
    REQUIRE_THROWS_WITH(
        [&] {
          for (int i = 0; i < 8; ++i) loader.next();
        }(),
        Contains("a1.h5: changed while"));
  }
}

TEST_CASE("a loader goes away at any moment", "[data][loader]") {
  const test::Folder folder;
  test::write_shards(folder.path(), {300});
  const Dataset dataset = open_dataset(folder.path());
  const SamplePlan plan = plan_of(dataset, {8});
  for (int taken = 0; taken < 20; ++taken) {
    Loader loader(dataset, plan, {.prefetch = 1 + taken % 3});
    for (int i = 0; i < taken; ++i) loader.next();
    REQUIRE(loader.wait_s() >= 0);
  }
}

TEST_CASE("batches come faster than a hundred thousand small images a second", "[data][loader][slow][speed]") {
  const test::Folder folder;
  ShardSpec spec;
  spec.sample = {1, 28, 28};
  spec.options = {.chunk_rows = 128, .deflate = 0};
  test::write_shards(folder.path(), {20000, 20000}, spec);
  const Dataset dataset = open_dataset(folder.path());
  const SamplePlan plan = plan_of(dataset, {64});
  Loader loader(dataset, plan, {.end_epoch = 5});
  const double start = now_s();
  std::int64_t samples = 0;
  for (std::int64_t step = 0; step < 5 * plan.steps_per_epoch(); ++step) samples += loader.next().n;
  const double rate = static_cast<double>(samples) / (now_s() - start);
  WARN("read, shuffled and converted: " << static_cast<std::int64_t>(rate) << " samples/s");
  REQUIRE(rate > 100e3);
}

}  // namespace echelon
