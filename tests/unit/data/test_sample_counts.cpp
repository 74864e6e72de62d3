// SPDX-License-Identifier: Apache-2.0
// The number of samples that count in a step, for every sharding and ragged end, compared with a count of all slots.
#include <catch2/catch.hpp>

#include "data/sample_plan.hpp"

namespace echelon {
namespace {

SamplePlanRequest request(std::vector<std::int64_t> files, Sharding sharding, Ragged ragged) {
  SamplePlanRequest made;
  made.file_chunk_rows.assign(files.size(), 8);
  made.file_samples = std::move(files);
  made.batch = {2, 3, 1};
  made.sharding = sharding;
  made.ragged = ragged;
  made.window_chunks = 4;
  return made;
}

}  // namespace

TEST_CASE("what counts in a step is what its replicas' slots say, without a look at each", "[data][plan][large_k]") {
  const auto check = [](const SamplePlanRequest& wanted) {
    const SamplePlan plan(wanted);
    for (std::int64_t epoch = 0; epoch < 2; ++epoch)
      for (std::int64_t step = 0; step < plan.steps_in(epoch); ++step) {
        std::int64_t counted = 0, row = 0;
        for (int r = 0; r < plan.replicas(); ++r) {
          REQUIRE(plan.row_of(r) == row);
          row += plan.batch(r);
          for (const SampleSlot& slot : plan.ids(epoch, step, r)) counted += slot.counts ? 1 : 0;
        }
        CAPTURE(static_cast<int>(wanted.ragged), static_cast<int>(wanted.sharding), wanted.stream, epoch, step);
        REQUIRE(plan.counting(epoch, step) == counted);
        REQUIRE(plan.weight(epoch, step) == static_cast<double>(counted * wanted.weight));
      }
  };
  for (const Ragged ragged : {Ragged::wrap, Ragged::drop, Ragged::zero_weight}) {
    for (const Sharding sharding : {Sharding::record, Sharding::file, Sharding::replicated}) {
      SamplePlanRequest wanted = request({30, 17, 24, 40}, sharding, ragged);
      wanted.weight = 5;
      check(wanted);
    }
    SamplePlanRequest stream = request({111}, Sharding::record, ragged);
    stream.stream = true;
    check(stream);
    SamplePlanRequest warm = request({111}, Sharding::record, ragged);
    warm.warmup = {.replicas = 2, .steps = 4};
    check(warm);
  }
}

}  // namespace echelon
