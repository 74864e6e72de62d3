// SPDX-License-Identifier: Apache-2.0
// The serial part of a step, computed from its times on one thread and on several.
#include "cli/amdahl.hpp"

#include <catch2/catch.hpp>

using namespace echelon::cli;

TEST_CASE("the serial share of a step follows from two times, and the speed of many threads from it", "[cli]") {
  // 10 ms are serial, 90 ms are shared.
  CHECK(serial_share(0.1, 0.01 + 0.09 / 2, 2) == Approx(0.1));
  CHECK(serial_share(0.1, 0.01 + 0.09 / 7, 7) == Approx(0.1));
  CHECK(amdahl_speedup(0.1, 32) == Approx(1 / (0.1 + 0.9 / 32)));
  CHECK(amdahl_speedup(0.0, 32) == Approx(32));
  CHECK(amdahl_speedup(1.0, 32) == Approx(1));
  // No serial part explains these times: more than twice as fast on two threads, or slower.
  CHECK(serial_share(0.1, 0.04, 2) == 0);
  CHECK(serial_share(0.1, 0.2, 2) == 1);
  CHECK(serial_share(0.1, 0.1, 1) == 0);
}
