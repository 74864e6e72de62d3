// SPDX-License-Identifier: Apache-2.0
// Prices the ways to divide the ranks of a launch into replicas and parts of a model, as parallel.split = "auto" does
// (parallel/choose.hpp), but for ranks that do not exist: the step's time is divided among layers by FLOPs, links are
// those of the described network, and the optimiser's pass takes as long as in the step.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"
#include "parallel/split_price.hpp"
#include "planner/network_model.hpp"
#include "planner/step_model.hpp"

namespace echelon::inline planner {

struct MeshForecast {
  int ranks = 1;
  std::string mesh;  // "data 2 x pipeline 2 (1f1b)"
  SplitPrice price;
  double samples_per_s = 0;
  double memory = 0;    // bytes of the rank with the largest footprint
  std::string verdict;  // "fastest", "too large"; "" otherwise
};

struct MeshRequest {
  const Config& config;  // the model is not split
  const Graph& graph;
  const StepModel& step;  // one replica with the whole model
  const NetworkModel& network;
  bool strong = false;  // all ranks together train step.samples, instead of each
};

// Returns at most six meshes of this number of ranks, fastest first. Throws ConfigError if no division is valid.
std::vector<MeshForecast> mesh_forecasts(const MeshRequest& request, int ranks);

}  // namespace echelon::inline planner
