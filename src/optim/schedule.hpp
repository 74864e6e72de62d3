// SPDX-License-Identifier: Apache-2.0
// The learning rate as a pure function of the config and the step: any thread may call it, and a resumed run has the
// rates of an uninterrupted one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"

namespace echelon::inline optim {

std::vector<std::string> schedule_names();

// The factor on the learning rate, with b = global_batch / base_batch: b (`linear`: Goyal et al. 2017), sqrt(b)
// (`sqrt`: Krizhevsky 2014), 1 (`none`). Throws ConfigError with the nearest name for an unknown scaling.
std::vector<std::string> scaling_names();
double scaling_factor(const OptimiserConfig& config, std::int64_t global_batch);

// The rate of update `step` (from 0), with r = config.learning_rate, w = warmup_epochs * steps_per_epoch:
//   step < w      r (step + 1) / w
//   constant      r
//   step          r decay_factor^m, m = number of decay_at_epochs that are <= step / steps_per_epoch
//   cosine        r (f + (1 - f) (1 + cos(pi p)) / 2)          Loshchilov, Hutter 2017, one period
//   polynomial    r (f + (1 - f) (1 - p)^power)
//   piecewise_constant   r times the last of `factors` whose point is not above the epoch, or step (points_in)
//   piecewise_linear     r times the factor on the straight line between two points; beyond the last point, its factor
//   one_cycle     r a(first_factor, 1, t / u) up to t = u, then r a(1, f, (t - u) / (total_steps - 1 - u)),
//                 with t = step, u = rise total_steps - 1, and a(x, y, q) = y + (x - y) (1 + cos(pi q)) / 2,
//                 or x + (y - x) q with anneal = "linear"       Smith, Topin 2019, as PyTorch's OneCycleLR
// with f = final_factor and p = (step - w) / (total_steps - w) within [0, 1]. `total_steps` is that of the whole run,
// or schedule_epochs * steps_per_epoch if that is set. Scaling with the batch is not included. Throws ConfigError with
// the nearest name for an unknown schedule.
double learning_rate_at(const OptimiserConfig& config, std::int64_t step, std::int64_t steps_per_epoch,
                        std::int64_t total_steps);

}  // namespace echelon::inline optim
