// SPDX-License-Identifier: Apache-2.0
// Evaluates a run's checkpoints while the run goes on (follow.cpp).
#pragma once

#include <string>

#include "comm/engine.hpp"

namespace echelon::cli {

struct FollowOptions {
  std::string model;  // folder of a run, or of several attempts at one; need not exist yet
  std::string data;   // "": data.test of the run's config
  std::string device;
  int threads = 0;
  double every_s = 2;       // interval at which the run is polled
  double patience_s = 600;  // time without a sign of life of the run
};

// Collective over `ranks`; null: this process alone. Returns 0 once the run has ended. Throws EnvironmentError if the
// run shows no sign of life, and the errors of `infer`.
int follow(const FollowOptions& options, Engine* ranks);

}  // namespace echelon::cli
