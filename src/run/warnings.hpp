// SPDX-License-Identifier: Apache-2.0
// The warnings that a user should read before a run begins: `echelon check` prints them, and the banner of `echelon
// train`.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline run {

// Returns the warnings that follow only from the config and the numbers of ranks and hosts.
std::vector<std::string> warnings_of_config(const Config& config, int ranks, int hosts);
// Returns the warnings about how the plan deals the samples, and what that does to the model.
std::vector<std::string> warnings_of_plan(const Config& config, const RunPlan& plan);

}  // namespace echelon::inline run
