// SPDX-License-Identifier: Apache-2.0
#include "train/trained_batches.hpp"

#include <catch2/catch.hpp>

#include "train/run_plan.hpp"

namespace echelon {
namespace {

StepRecord trained(std::int64_t epoch, std::int64_t batch, double entered = 8) {
  StepRecord record;
  record.epoch = epoch;
  record.batch = batch;
  record.entered_samples = entered;
  return record;
}

}  // namespace

TEST_CASE("batches that entered the model are kept as runs, of one epoch", "[train][coverage]") {
  TrainedBatches batches(2, 3);
  for (const std::int64_t batch : {3, 4, 5}) batches.add(trained(2, batch));
  batches.add(trained(2, 6, 0));
  batches.add(trained(2, 7));
  batches.add(trained(3, 0));
  CHECK(batches.text() == "0-5 7-7");
  CHECK(batches_in(batches.text()) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 7});
  CHECK(batches_in("").empty());
}

}  // namespace echelon
