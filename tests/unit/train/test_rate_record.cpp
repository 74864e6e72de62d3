// SPDX-License-Identifier: Apache-2.0
#include "train/rate_record.hpp"

#include <catch2/catch.hpp>
#include <cmath>

namespace echelon {
namespace {

StepRecord step(double training_s, double samples, double evaluation_s = 0, double checkpoint_s = 0) {
  StepRecord record;
  record.entered_samples = samples;
  record.times.evaluation_s = evaluation_s;
  record.times.checkpoint_s = checkpoint_s;
  record.times.total_s = training_s + evaluation_s + checkpoint_s;
  return record;
}

}  // namespace

TEST_CASE("a rate leaves the warm-up out, and evaluations and checkpoints between steps", "[train][rates]") {
  RateRecord record;
  record.add(step(5, 10));
  record.add(step(2, 10, 3, 1));
  record.add(step(2, 0));         // its gradient came too late
  record.add(step(2, 10, 7, 8));  // time after the last step does not count as training
  CHECK(record.warm_s(1) == Approx(5));
  CHECK(record.warm_s(2) == Approx(7));
  CHECK(record.warm_s(4) == Approx(5));  // the warm-up is as long as the attempt, or longer
  CHECK(record.last_s() == Approx(5 + 6 + 2 + 2));
  const RateRecord::Share share = record.between(record.warm_s(1), record.last_s());
  CHECK(share.samples == Approx(20));
  CHECK(share.evaluation_s == Approx(3));
  CHECK(share.checkpoint_s == Approx(1));
}

TEST_CASE("of a step across the end of the warm-up its share counts", "[train][rates]") {
  RateRecord slow;  // a rank beside one whose first step ended after 1 s
  slow.add(step(4, 8));
  slow.add(step(4, 8));
  CHECK(slow.between(1, 8).samples == Approx(6 + 8));
  CHECK(slow.between(1, 6).samples == Approx(6 + 4));
}

TEST_CASE("one step alone has no warm-up, and a rank without steps has no samples", "[train][rates]") {
  RateRecord record;
  CHECK(record.last_s() == 0);
  CHECK(record.between(0, 10).samples == 0);
  record.add(step(2, 6));
  CHECK(std::isinf(record.warm_s(1)));
  CHECK(record.between(0, record.last_s()).samples == Approx(6));
}

}  // namespace echelon
