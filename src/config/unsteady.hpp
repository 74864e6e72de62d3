// SPDX-License-Identifier: Apache-2.0
// Settings that are valid, but with which training is known to fail or to behave differently.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

// Returns one sentence per setting, with advice. `ranks`: ranks of the launch, servers included.
std::vector<std::string> unsteady(const Config& config, int ranks);

}  // namespace echelon::inline config
