// The ways to divide the ranks of a launch into replicas and parts of a model, priced as parallel.split = "auto" prices
// them (parallel/choose.hpp), for ranks that are not there: the step's time is shared among layers by FLOPs, the links
// are the described network's, and the optimiser's pass takes what it takes in the step.
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
  const Config& config;  // of a model that is not split
  const Graph& graph;
  const StepModel& step;  // of one replica with the whole model
  const NetworkModel& network;
  bool strong = false;  // all ranks together take step.samples, not each of them
};

// The fastest meshes of so many ranks, at most six, fastest first. ConfigError where nothing can be divided so.
std::vector<MeshForecast> mesh_forecasts(const MeshRequest& request, int ranks);

}  // namespace echelon::inline planner
