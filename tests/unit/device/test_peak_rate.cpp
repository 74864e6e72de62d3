// SPDX-License-Identifier: Apache-2.0
// The peak rate, with which reports compare, is measured within the memory that a run leaves free.
#include "device/peak_rate.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "device/reference/reference.hpp"

using namespace echelon;

TEST_CASE("the peak of products is of the sizes that fit into memory", "[device][peak]") {
  DeviceOptions options;
  options.memory_limit_bytes = 1 << 20;  // matrices of 256 x 256
  CHECK(peak_flops(*make_reference_device(options), DType::f32, DType::f32) > 0);
  options.memory_limit_bytes = 100 << 10;
  CHECK(std::isnan(peak_flops(*make_reference_device(options), DType::f32, DType::f32)));
}
