// SPDX-License-Identifier: Apache-2.0
// Synchronous data parallelism with the devices' own library: gradients are summed in the devices' arenas, in parallel
// with the device's other work. Nothing is staged or coded, and the host does not wait.
//
// Buckets are summed in the order in which back-propagation finishes them. It is the same on all ranks, so that no
// priority is needed. Sums of synchronised batch norm are part of this order: one begins after the buckets announced
// before it. exchange.overlap says when the device waits for a bucket: before the optimiser's step at the end of the
// pass (none, buckets), or layer by layer in the next forward (layers), where the first synchronised batch norm waits
// for all buckets. Sparse parameters are sent as whole tables.
#pragma once

#include <memory>

#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

// `config.algorithm` sums on devices (AlgorithmTraits). Collective. Throws ConfigError if the device is not a GPU or
// gradients are coded, EnvironmentError if the library is missing or ranks share a GPU.
std::unique_ptr<Strategy> make_on_devices(const ExchangeConfig& config, const StrategyContext& context);

}  // namespace echelon::inline exchange
