// SPDX-License-Identifier: Apache-2.0
// Training images are moved and mirrored in the same way for any number of replicas.
#include <catch2/catch.hpp>

#include "tests/run/compare.hpp"
#include "tests/support/random.hpp"

namespace echelon {

TEST_CASE("augmented images: k replicas have the weights of one", "[run]") {
  const test::Trial trial;
  const test::Sets sets = {
      "device.kind=reference",       "device.dtype=f64",       "train.steps=6", "evaluate.every_epochs=0",
      "data.augment_crop_padding=2", "data.augment_flip=true", "data.test="};
  const test::TrainedRun one = test::train_run(trial, "one", {{1}}, sets);
  check_equal(test::train_run(trial, "two", {{2}}, sets), one, {.within = 1e-8});
  check_equal(test::train_run(trial, "four", {{4}}, sets), one, {.within = 1e-8});
  const test::TrainedRun still = test::train_run(trial, "still", {{1, {"data.augment_flip=false"}}}, sets);
  CHECK(test::relative_distance(still.values("weights/"), one.values("weights/")) > 1e-4);
}

}  // namespace echelon
