// SPDX-License-Identifier: Apache-2.0
// The values of a tensor in memory of the host.
#pragma once

#include <cstddef>
#include <vector>

#include "device/device.hpp"

namespace echelon::inline train {

// Waits for the device. Returns the tensor's own memory on a host, else a copy in `copy`.
inline const void* host_values(Device& device, const Tensor& tensor, std::vector<std::byte>& copy) {
  if (device.on_host()) {
    device.synchronize();
    return tensor.data;
  }
  copy.resize(tensor.bytes());
  device.to_host(copy.data(), tensor.data, copy.size());
  return copy.data();
}

}  // namespace echelon::inline train
