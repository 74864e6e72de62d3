// Sums of a program's small tensors over all replicas, between two of its ops: what synchronised batch norm waits for.
#pragma once

#include <vector>

#include "comm/engine.hpp"
#include "config/schema.hpp"
#include "device/device.hpp"
#include "device/tensor.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

class SumsOnDevices;

class BatchNormSum {
 public:
  // All replicas ask for the same sums in the same order. `channel` is theirs alone. In shared memory where the
  // exchange sums there and all replicas are on one host.
  BatchNormSum(Device& device, Engine& engine, int channel, Strategy& strategy, const ExchangeConfig& config);

  // Collective over the replicas, on the compute thread. `tensor`: f64, plain layout; for what is enqueued afterwards
  // every replica holds the sum, with the same bits. On the devices where the strategy sums there; elsewhere it blocks:
  // the values travel through the host. One sum of 8 bytes an element; EnvironmentError of transport or library.
  void operator()(const Tensor& tensor);

 private:
  void sum_on_host();

  Device& device_;
  Engine& engine_;
  int channel_;
  bool in_memory_;
  SumsOnDevices* on_devices_;  // null where no device sums
  std::vector<double> host_;
};

}  // namespace echelon::inline exchange
