// SPDX-License-Identifier: Apache-2.0
// Sharpness of a minimum (Keskar et al. 2016, metric 2.1 with A = identity):
//
//   100 * (max over |d_i| <= epsilon (|w_i| + 1) of f(w + d) - f(w)) / (1 + f(w))
//
// f is the mean loss over the first samples of the data, with batch norm and dropout as in training, with one fixed
// key. The maximum is searched by projected steps along the sign of the gradient, each a fifth of the box, so the
// result is a lower bound of the true maximum.
#pragma once

#include <cstdint>

#include "checkpoint/saved_model.hpp"
#include "data/dataset.hpp"

namespace echelon::inline inference {

struct SharpnessOptions {
  double epsilon = 1e-3;        // half width of the box, relative to |w| + 1
  std::int64_t samples = 2048;  // upper limit, rounded down to whole batches of config.evaluate.batch
  int steps = 10;               // steps of the search
};

struct Sharpness {
  double value = 0;    // the formula above, in percent
  double loss = 0;     // f(w)
  double highest = 0;  // largest f(w + d) that was found
  int steps = 0;
  std::int64_t samples = 0;
};

// Runs on one rank: (steps + 1) forward and backward passes over the samples, and three copies of the weights in host
// memory. Restores the weights of the model afterwards, unless it throws (DataError of the loader, MemoryError).
Sharpness measure_sharpness(LoadedModel& model, const Dataset& data, const Config& config,
                            const SharpnessOptions& options);

}  // namespace echelon::inline inference
