// SPDX-License-Identifier: Apache-2.0
#include "device/paced/op_time.hpp"

namespace echelon::inline device {

double OpTimes::seconds(const OpSpec& spec) const {
  if (const auto row = table.find(spec.text()); row != table.end()) return row->second;
  return flops(spec) / (1e9 * gflops) + traffic_bytes(spec) / (1e9 * gb_per_s);
}

}  // namespace echelon::inline device
