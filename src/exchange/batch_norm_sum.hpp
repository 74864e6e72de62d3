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

  // f64, plain; afterwards every replica holds the same bits. Waits for the device and for the other replicas.
  void operator()(const Tensor& tensor);

 private:
  Device& device_;
  Group group_;
  std::vector<double> host_;
};

}  // namespace echelon::inline exchange
