// The warnings that a user should read before a run begins: `echelon check` prints them, and the banner of `echelon
// train`.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline run {

// Warnings that follow from the config alone, on so many ranks and hosts.
std::vector<std::string> warnings_of_config(const Config& config, int ranks, int hosts);
// Warnings about how the plan deals the samples and what that does to the model.
std::vector<std::string> warnings_of_plan(const Config& config, const RunPlan& plan);

}  // namespace echelon::inline run
