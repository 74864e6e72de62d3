// SPDX-License-Identifier: Apache-2.0
// Chooses the layouts of a model's convolutions by time: forward and backward of the whole model, reorders included,
// with all convolutions by the device's rule, channels last, blocked, and each as it was fastest.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device/device.hpp"
#include "model/graph.hpp"

namespace echelon::inline model {

struct MeasuredLayouts {
  LayoutTable table;   // the rule if nothing is faster by 3 %
  std::string report;  // one line
};

// `open` opens the device with a table. A pass has `batch` samples, or fewer if they take more than 4 GFLOP, and is
// repeated three times; the least time counts.
MeasuredLayouts measure_layouts(const Graph& graph, DType dtype, std::int64_t batch,
                                const std::function<std::unique_ptr<Device>(const LayoutTable&)>& open);

}  // namespace echelon::inline model
