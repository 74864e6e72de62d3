// SPDX-License-Identifier: Apache-2.0
// Readings of a device's own clock at points of its stream. If the host runs ahead of the device, the host's
// clock measures the duration of calls, not that of the work. Only `wait` waits. The device's thread makes all
// calls.
#pragma once

#include <cstddef>

namespace echelon::inline device {

class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  // Enqueues reading `i`, a small number, which replaces an earlier reading of that number. The first use of a number
  // allocates.
  virtual void mark(std::size_t i) = 0;
  virtual bool passed(std::size_t i) const = 0;
  // Waits until reading `i` has passed. EnvironmentError if the device has failed.
  virtual void wait(std::size_t i) const = 0;
  // Seconds between two readings; both must have passed, and `from` must have been enqueued before `to`.
  virtual double seconds(std::size_t from, std::size_t to) const = 0;
};

}  // namespace echelon::inline device
