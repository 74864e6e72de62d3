// Readings of a device's own clock at points of its stream. Where the host runs ahead of the device, the host's clock
// measures how long calls took, and not how long the work took. Only `wait` waits. All calls are made by
// the device's thread.
#pragma once

#include <cstddef>

namespace echelon::inline device {

class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  // Enqueues reading `i`, a small number; an earlier reading of that number is forgotten. The first use of a number
  // allocates.
  virtual void mark(std::size_t i) = 0;
  virtual bool passed(std::size_t i) const = 0;
  // Until it has passed. EnvironmentError of a device that has failed.
  virtual void wait(std::size_t i) const = 0;
  // Both readings have passed, `from` was enqueued before `to`.
  virtual double seconds(std::size_t from, std::size_t to) const = 0;
};

}  // namespace echelon::inline device
