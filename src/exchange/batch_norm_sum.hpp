// Sums of a program's small tensors over all replicas, between two of its ops: what synchronised batch norm waits for.
#pragma once

#include <vector>

#include "comm/group.hpp"
#include "device/device.hpp"
#include "device/tensor.hpp"

namespace echelon::inline exchange {

class BatchNormSum {
 public:
  // All replicas ask for the same sums in the same order. `channel` is theirs alone.
  BatchNormSum(Device& device, Engine& engine, int channel) : device_(device), group_(engine, channel) {}

  // Collective over the replicas, blocking; on the compute thread. `tensor`: f64, plain layout; afterwards every
  // replica holds the sum, with the same bits. One sum of 8 bytes an element; EnvironmentError of the transport.
  void operator()(const Tensor& tensor);

 private:
  Device& device_;
  Group group_;
  std::vector<double> host_;
};

}  // namespace echelon::inline exchange
