// Learning rate as a pure function of the step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline optim {

std::vector<std::string> schedule_names();

// What the global batch makes of the learning rate: global/base_batch (`linear`: Goyal et al. 2017), its square root
// (`sqrt`: Krizhevsky 2014), 1 (`none`). Throws ConfigError with the nearest name for an unknown way.
std::vector<std::string> scaling_names();
double scaling_factor(const OptimiserConfig& config, std::int64_t global_batch);

// `constant`, `step` (times `decay_factor` at each of `decay_at_epochs`), `cosine` (to `final_factor` at the end),
// `polynomial` (to the same, along (1 - part)^power), each after a linear warm-up over `warmup_epochs`, whose step t
// (from 0) takes the part (t+1) / warm-up steps; cosine and polynomial span what follows it.
// `total_steps` is the whole run's. Throws ConfigError with the nearest name for an unknown schedule.
double learning_rate_at(const OptimiserConfig& config, std::int64_t step, std::int64_t steps_per_epoch,
                        std::int64_t total_steps);

}  // namespace echelon::inline optim
