// What a replica exchanges in a step, and when: the buckets of the model's gradients (exchange/buckets.hpp), with the
// moments at which back-propagation has finished each and the next forward pass reads its weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.hpp"
#include "model/graph.hpp"

namespace echelon::inline planner {

struct GradientBucket {
  std::int64_t elems = 0;
  double ready = 1;         // fraction of back-propagation after which the gradient is finished
  double needed = 0;        // fraction of the forward pass after which the weights are read
  double onebit_bytes = 0;  // of a message of onebit, by the rows of the tensors; 0: not known
};

struct Workload {
  std::string model;
  std::vector<GradientBucket> buckets;  // in the order in which they are finished
  std::int64_t elems = 0;               // of all buckets
  double elem_bytes = 4;
  double flops = 0;            // of one sample, forward and backward
  bool sparse_tables = false;  // counted as if they were sent whole

  double bytes() const { return static_cast<double>(elems) * elem_bytes; }
};

// The time of a layer is taken to be its share of the model's FLOPs, forward and backward alike. Of a model that is
// split over parts = pipeline x tensor ranks each bucket has 1 / parts of its values.
Workload workload_of(const Config& config, const Graph& graph);

}  // namespace echelon::inline planner
