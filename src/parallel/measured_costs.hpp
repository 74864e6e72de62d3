// What each layer of a model costs on this device, measured.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.hpp"
#include "model/graph.hpp"

namespace echelon::inline parallel {

// By node: seconds of one sample of a micro-batch, forward and backward, of the pieces that fall to `rank`; zero for
// others. The sum over all ranks, who measure at once, is the model's: no rank needs memory for the whole of it, and
// cores are as busy as in the run. A node that runs fused into another's op costs nothing.
std::vector<double> measure_costs(const Graph& graph, Device& device, DType dtype, std::int64_t micro_batch, int rank,
                                  int ranks);

}  // namespace echelon::inline parallel
