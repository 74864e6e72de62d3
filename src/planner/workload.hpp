// SPDX-License-Identifier: Apache-2.0
// The exchange of a replica's step and its schedule: the buckets of the model's gradients (exchange/buckets.hpp), with
// the moments at which back-propagation has finished each bucket and the next forward pass reads its weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/codec/codec.hpp"
#include "config/schema.hpp"
#include "model/graph.hpp"

namespace echelon::inline planner {

struct GradientBucket {
  std::int64_t elems = 0;
  double ready = 1;                 // fraction of back-propagation after which the gradient is finished
  double needed = 0;                // fraction of the forward pass after which the weights are read
  std::vector<CodedRun> rows = {};  // rows of the tensors, for onebit; empty: not known
};

struct Workload {
  std::string model;
  std::vector<GradientBucket> buckets;  // in the order in which back-propagation finishes them
  std::int64_t elems = 0;               // sum over all buckets
  double elem_bytes = 4;
  double flops = 0;            // per sample, forward and backward
  bool sparse_tables = false;  // the model has some; they are counted as if they were sent whole

  double bytes() const { return static_cast<double>(elems) * elem_bytes; }
};

// The time of a layer is assumed to be proportional to its FLOPs, forward and backward alike. If the model is split
// over parts = pipeline x tensor ranks, each bucket has 1 / parts of its values.
Workload workload_of(const Config& config, const Graph& graph);

}  // namespace echelon::inline planner
