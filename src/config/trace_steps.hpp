// The steps that run.trace names.
#pragma once

#include <cstdint>
#include <optional>

#include "config/schema.hpp"

namespace echelon::inline config {

// Steps of the run, counted from 1, both included.
struct TraceSteps {
  std::int64_t first = 0, last = 0;
};

// Of "steps 10..20" or "step 10"; none of "". ConfigError with the place of the key and the nearest valid text.
std::optional<TraceSteps> trace_steps(const Config& config);

// ConfigError where a run of so many steps ends before the first of them.
void check_trace_steps(const Config& config, std::int64_t total_steps);

}  // namespace echelon::inline config
