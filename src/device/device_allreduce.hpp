// SPDX-License-Identifier: Apache-2.0
// Sums over the devices of all ranks, from device memory to device memory, by a library for such devices (NCCL).
//
// Sums run concurrently with later work on the device's stream, one after another in the order of the calls. All ranks
// must make the same calls in the same order: if two ranks differ, the library waits for ever or sums the wrong
// buffers. The device's thread makes all calls but done(), and they return at once. EnvironmentError if the library
// fails: from then on the device refuses every further call, because its content is undefined. Waits for the device
// (Device::synchronize, to_host, Event::wait) also end with that error if a sum fails while they wait.
#pragma once

#include <cstddef>
#include <functional>

#include "base/dtype.hpp"

namespace echelon::inline device {

// The means by which ranks find each other. `broadcast` overwrites the bytes of all ranks by those of rank 0.
struct DeviceGroup {
  int rank = 0;
  int ranks = 1;
  std::size_t slots = 1;  // number of slots for sums
  std::function<void(void* data, std::size_t bytes)> broadcast;
};

class DeviceAllreduce {
 public:
  virtual ~DeviceAllreduce() = default;
  // Enqueues the sum of n values in place, after everything enqueued on the device's stream so far. dtype: f32 or f64.
  // `slot`: below DeviceGroup::slots, for `join`.
  virtual void sum(std::size_t slot, DType dtype, void* data, std::size_t n) = 0;
  // Work enqueued on the device's stream from now on starts after the slot's last sum.
  virtual void join(std::size_t slot) = 0;
  // Whether the slot's last sum has ended; true if there was none. Any thread.
  virtual bool done(std::size_t slot) const = 0;
};

}  // namespace echelon::inline device
