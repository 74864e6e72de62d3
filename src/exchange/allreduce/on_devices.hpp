// Synchronous data parallelism over the devices' own library: gradients are summed where they lie, in the devices'
// arenas, beside the device's own work. Nothing is staged, nothing is coded, and the host waits for nothing.
//
// Buckets go out in the order in which back-propagation finishes them, which is the same on all ranks, so they take no
// priority. Sums of synchronised batch norm stand among them, in the order of the calls: one begins when the buckets
// announced before it are summed. exchange.overlap says when the device waits for a bucket: before the optimiser's step
// at the end of the pass (none, buckets), or layer by layer in the next forward (layers), where the first synchronised
// batch norm waits for all. Sparse parameters travel whole.
#pragma once

#include <memory>

#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

// `config.algorithm` is one of device_allreduce_names(). All ranks call it. ConfigError where the device is no GPU or
// gradients are coded; EnvironmentError where the library is missing or ranks share a GPU.
std::unique_ptr<Strategy> make_on_devices(const ExchangeConfig& config, const StrategyContext& context);

}  // namespace echelon::inline exchange
