// What a user should know of a run before it begins: `echelon check` prints it, and the banner of `echelon train`.
#pragma once

#include <string>
#include <vector>

#include "config/schema.hpp"
#include "train/run_plan.hpp"

namespace echelon::inline run {

// Of the config alone, on so many ranks and hosts.
std::vector<std::string> warnings_of_config(const Config& config, int ranks, int hosts);
// Of how the plan deals the samples, and of what that does to the model.
std::vector<std::string> warnings_of_plan(const Config& config, const RunPlan& plan);

}  // namespace echelon::inline run
