// SPDX-License-Identifier: Apache-2.0
// Replicas or shards, layer by layer: the bytes that each layer with weights sends in a step if k ranks are replicas of
// it, and if they are tensor shards of it while the rest of the model stays replicated (Krizhevsky: One weird trick for
// parallelizing convolutional neural networks, arXiv:1404.5997).
//
// Bytes that a rank sends, for values of 4 bytes, W weights, x inputs and y outputs per sample, b samples per rank:
//   replicas   2 (k-1)/k W             the all-reduce of the gradient
//   shards     2 (k-1) b (x + y / k)   all inputs go to every shard and their gradients back; each shard's outputs go
//                                      back to the ranks of the samples, and their gradients to the shards
// Shards send less if W > b k (x + y / k): dense layers with many features and small batches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/graph.hpp"

namespace echelon::inline parallel {

struct LayerTraffic {
  std::string name;
  std::int64_t weights = 0;
  double replica_bytes = 0, shard_bytes = 0;
  bool shards_send_less() const { return shard_bytes < replica_bytes; }
};

// Returns the traffic of every layer with weights that can be divided by its units over `ranks` ranks, in the order of
// the graph; tables whose gradients are sent by rows (embeddings) are left out. `samples` is per rank and step.
std::vector<LayerTraffic> layer_traffic(const Graph& graph, int ranks, double samples);

// Returns the advice in a sentence: which layers to divide inside a host, and how much that saves, or that it does not
// pay.
std::string layer_traffic_text(const std::vector<LayerTraffic>& layers, int ranks);

}  // namespace echelon::inline parallel
