// SPDX-License-Identifier: Apache-2.0
// Keys of [model] that say which labels count in the loss, and how much.
#pragma once

#include <cstdint>
#include <vector>

namespace echelon::inline config {

struct LabelKeys {
  std::vector<std::int64_t> ignore_label;  // labels that do not count
  std::vector<double> class_weights;       // weight of the labels of each class; empty: 1
  double inverse_frequency = 0;            // exponent of weights (1 / frequency in the training labels); 0: none
  bool operator==(const LabelKeys&) const = default;
};

}  // namespace echelon::inline config
