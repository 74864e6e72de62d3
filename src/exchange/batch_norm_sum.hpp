// SPDX-License-Identifier: Apache-2.0
// Sums a program's small tensors over all replicas between two of its ops, for synchronised batch norm, and the
// weights of labels of a step.
#pragma once

#include <cstdint>
#include <memory>
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
  // All replicas ask for the same sums in the same order. No one else may use `channel`. Sums are computed in shared
  // memory if the exchange sums there and all replicas are on one host. `group`: sums of tensors are over this many
  // neighbouring replicas, which divides their number; 0: over all. Collective.
  BatchNormSum(Device& device, Engine& engine, int channel, Strategy& strategy, const ExchangeConfig& config,
               std::int64_t group = 0);

  // Replaces the values of `tensor` (f64, plain layout) by their sum over the group, with the same bits on all: ops
  // that are enqueued afterwards see the sum. Collective; called by the compute thread. If the strategy sums on
  // devices, the call only enqueues; otherwise it blocks, and 8 bytes per element pass through the host. Throws
  // EnvironmentError if the transport or the devices' library fails.
  void operator()(const Tensor& tensor);
  // The same for values of the host, over all replicas.
  void add(std::vector<double>& values);

 private:
  void sum_on_host(Engine& engine, bool in_memory);

  Device& device_;
  Engine& engine_;
  int channel_;
  std::unique_ptr<Engine> group_;  // null: all replicas
  bool in_memory_;
  SumsOnDevices* on_devices_;  // null if no device sums
  std::vector<double> host_;
};

}  // namespace echelon::inline exchange
