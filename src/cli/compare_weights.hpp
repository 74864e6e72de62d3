// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/options.hpp"

namespace echelon::cli {

// Compares the newest checkpoints of two runs, two checkpoints or two safetensors files. Prints the distances.
int compare_weights(const CompareOptions& options);

}  // namespace echelon::cli
