// Sharpness of a minimum (Keskar et al. 2016, metric 2.1 with A = identity):
//
//   100 * (max over |d_i| <= epsilon (|w_i| + 1) of f(w + d) - f(w)) / (1 + f(w))
//
// f is the mean loss over the first samples of the data, batch norm and dropout as in training with one fixed key. The
// maximum is sought by projected steps along the sign of the gradient, each a fifth of the box: what is found bounds
// the true maximum from below.
#pragma once

#include <cstdint>

#include "checkpoint/saved_model.hpp"
#include "data/dataset.hpp"

namespace echelon::inline inference {

struct SharpnessOptions {
  double epsilon = 1e-3;
  std::int64_t samples = 2048;  // at most
  int steps = 10;
};

struct Sharpness {
  double value = 0, loss = 0, highest = 0;
  int steps = 0;
  std::int64_t samples = 0;
};

// The model's weights are as before afterwards.
Sharpness measure_sharpness(LoadedModel& model, const Dataset& data, const Config& config,
                            const SharpnessOptions& options);

}  // namespace echelon::inline inference
