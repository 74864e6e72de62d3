// Settings that are valid and with which training is known to go wrong, or another way than with others.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline config {

// A sentence each, with what to change; `ranks`: of the launch, servers included.
std::vector<std::string> unsteady(const Config& config, int ranks);

}  // namespace echelon::inline config
