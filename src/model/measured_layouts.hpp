// SPDX-License-Identifier: Apache-2.0
// Chooses how a model's convolutions are computed by time: forward and backward of the whole model, reorders included,
// with all convolutions by the device's rules, channels last, blocked, then in the best of these with
// gradients by the library, where the device has code of its own for them, and last with each as it was fastest.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device/device.hpp"
#include "model/graph.hpp"

namespace echelon::inline model {

struct MeasuredLayouts {
  ConvTable table;     // the rule if nothing is faster by 3 %
  std::string report;  // one line
};

using OpenWithTable = std::function<std::unique_ptr<Device>(const ConvTable&)>;

// `open` opens the device with a table. A pass has `batch` samples, or fewer if they take more than 4 GFLOP; of equal
// convolutions it runs one. The least time of up to three passes counts. No candidate begins that, by the time of
// those before, would not end within about a second.
MeasuredLayouts measure_layouts(const Graph& graph, DType dtype, std::int64_t batch, const OpenWithTable& open);

}  // namespace echelon::inline model
