// Sums over the devices of all ranks by a library for such devices (NCCL), from device memory to device memory.
//
// Sums run beside what is enqueued on the device's stream meanwhile, one after another in the order of the calls. All
// ranks make the same calls in the same order: where two ranks differ, the library waits for ever or sums the wrong
// buffers. Calls come from the device's thread and return at once, but for done(). EnvironmentError where the library
// fails: from then on the device refuses every further call, because what it holds is undefined. Waits for the device
// (Device::synchronize, to_host, Event::wait) end with that error too, where a sum fails while they wait.
#pragma once

#include <cstddef>
#include <functional>

#include "base/dtype.hpp"

namespace echelon::inline device {

// How ranks find each other. `broadcast` overwrites all ranks' bytes by rank 0's.
struct DeviceGroup {
  int rank = 0;
  int ranks = 1;
  std::size_t slots = 1;  // of sums
  std::function<void(void* data, std::size_t bytes)> broadcast;
};

class DeviceAllreduce {
 public:
  virtual ~DeviceAllreduce() = default;
  // Enqueues the sum of n values in place, after everything enqueued on the device's stream so far. dtype: f32 or f64.
  // `slot`: below DeviceGroup::slots, for `join`.
  virtual void sum(std::size_t slot, DType dtype, void* data, std::size_t n) = 0;
  // What is enqueued on the device's stream from now on begins after the slot's last sum.
  virtual void join(std::size_t slot) = 0;
  // Whether the slot's last sum has ended; true where there was none. Any thread.
  virtual bool done(std::size_t slot) const = 0;
};

}  // namespace echelon::inline device
