// Sums over the devices of all ranks by the devices' own library, from device memory to device memory.
//
// Sums run beside what the device is told meanwhile, one after another in the order of the calls, which all ranks make
// alike: the library would wait for ever, or sum the wrong buffers, where two ranks differ.
#pragma once

#include <cstddef>
#include <functional>

#include "base/dtype.hpp"

namespace echelon::inline device {

// How ranks find each other. `broadcast` overwrites all ranks' bytes by rank 0's.
struct DeviceGroup {
  int rank = 0;
  int ranks = 1;
  std::function<void(void* data, std::size_t bytes)> broadcast;
};

class DeviceAllreduce {
 public:
  virtual ~DeviceAllreduce() = default;
  // Enqueues the sum of n values in place, after all that the device has been told so far. `slot`: a small number that
  // `join` takes.
  virtual void sum(std::size_t slot, DType dtype, void* data, std::size_t n) = 0;
  // What the device is told from now on begins after the slot's last sum.
  virtual void join(std::size_t slot) = 0;
};

}  // namespace echelon::inline device
