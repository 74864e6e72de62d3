// SPDX-License-Identifier: Apache-2.0
// The check that every test on a real GPU makes first.
#pragma once

#include <string>

#include "device/device.hpp"
#include "tests/support/skip.hpp"

namespace echelon::test {

// Returns true, and counts the test as skipped, if there are fewer usable GPUs.
inline bool without_gpus(int wanted) {
  std::string why;
  const int gpus = visible_gpus(&why);
  return skip_without(gpus >= wanted, Lacks::gpu, gpus == 0 ? why : "one GPU");
}
inline bool without_gpu() { return without_gpus(1); }

}  // namespace echelon::test
