// SPDX-License-Identifier: Apache-2.0
// The time that an op takes on a simulated device.
#pragma once

#include <string>

#include "device/op_spec.hpp"
#include "device/paced/table.hpp"

namespace echelon::inline device {

struct OpTimes {
  PacedTable table = {};   // seconds by OpSpec::text(); for other ops:
  double gflops = 50.0;    // rate of flops(spec)
  double gb_per_s = 10.0;  // rate of traffic_bytes(spec); the two times are added

  bool tabled(const OpSpec& spec) const { return table.contains(spec.text()); }
  double seconds(const OpSpec& spec) const;
};

}  // namespace echelon::inline device
