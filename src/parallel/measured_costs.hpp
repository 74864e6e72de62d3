// SPDX-License-Identifier: Apache-2.0
// The measured cost of each layer of a model on this device.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.hpp"
#include "model/graph.hpp"

namespace echelon::inline parallel {

// By node: seconds of one sample, forward and backward, in micro-batches of `micro_batch`. The model is cut into pieces
// of equal FLOPs, and each rank measures its share of them; all other nodes are zero, and the caller sums the costs
// over all ranks. All ranks measure at the same time, so that cores are as busy as in the run, and no rank needs memory
// for the whole model. A node that is fused into another one costs 0. Builds programs and runs each several times,
// which takes seconds.
std::vector<double> measure_costs(const Graph& graph, Device& device, DType dtype, std::int64_t micro_batch, int rank,
                                  int ranks);

}  // namespace echelon::inline parallel
