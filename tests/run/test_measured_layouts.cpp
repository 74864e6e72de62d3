// SPDX-License-Identifier: Apache-2.0
// device.measure_layouts as a user runs it: printed, the same on all ranks, kept by a run that resumes, and refused
// where the bits of a run must not depend on time.
#include <catch2/catch.hpp>

#include "tests/run/trial.hpp"

using namespace echelon;
using Catch::Contains;

TEST_CASE("measured layouts are told, and a resumed run keeps them", "[run]") {
  const test::Trial trial;
  const test::Sets sets = {"device.kind=onednn", "device.threads=1", "device.measure_layouts=true",
                           "checkpoint.every_epochs=1"};
  const test::Outcome first = trial.train(2, test::with(sets, {"train.epochs=1"}));
  INFO(first.out << first.err);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.out, Contains("layouts   of 24 samples in ") && Contains(": rule ") && Contains("chosen: "));
  const test::Outcome second = trial.train(2, test::with(sets, {"train.epochs=2"}));
  INFO(second.out << second.err);
  REQUIRE(second.code == 0);
  CHECK_THAT(second.out, Contains("layouts   chosen earlier"));
}

TEST_CASE("layouts are not measured for reproducible runs, split models and devices without a choice", "[run]") {
  const test::Trial trial;
  const test::Sets measured = {"device.measure_layouts=true", "device.threads=1", "train.epochs=1"};
  const test::Outcome reproducible =
      trial.train(0, test::with(measured, {"device.kind=onednn", "train.reproducible=true"}));
  CHECK(reproducible.code == 2);
  CHECK_THAT(reproducible.err, Contains("write device.measure_layouts = false"));
  const test::Outcome split = trial.train(2, test::with(measured, {"device.kind=onednn", "parallel.pipeline=2"}));
  INFO(split.out << split.err);
  CHECK(split.code == 0);
  CHECK_THAT(split.out, !Contains("layouts   "));
  const test::Outcome reference = trial.check(test::with(measured, {"device.kind=reference"}));
  CHECK_THAT(reference.out + reference.err, Contains("device.measure_layouts"));
}
