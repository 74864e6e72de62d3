#pragma once

#include "cli/options.hpp"

namespace echelon::cli {

// Of the newest checkpoints of two runs, of checkpoints or safetensors files: prints the distances; the exit code.
int compare_weights(const CompareOptions& options);

}  // namespace echelon::cli
