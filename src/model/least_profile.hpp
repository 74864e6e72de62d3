// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/program.hpp"

namespace echelon::inline model {

// Profiles a program three times, after one run in which weights are packed, and returns each op's least time.
std::vector<OpReport> least_profile(Program& program);

}  // namespace echelon::inline model
