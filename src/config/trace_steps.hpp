// SPDX-License-Identifier: Apache-2.0
// The steps that run.trace names.
#pragma once

#include <cstdint>
#include <optional>

#include "config/schema.hpp"

namespace echelon::inline config {

// Steps of the run, counted from 1, with both ends included.
struct TraceSteps {
  std::int64_t first = 0, last = 0;
};

// Parses "steps 10..20" or "step 10"; returns none for "". Throws ConfigError with the key's place and the nearest
// valid text.
std::optional<TraceSteps> trace_steps(const Config& config);

// Throws ConfigError if a run of `total_steps` ends before the first of the steps.
void check_trace_steps(const Config& config, std::int64_t total_steps);

}  // namespace echelon::inline config
