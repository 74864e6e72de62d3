// Layers split by their units over the shards of a stage (Megatron, Shoeybi 2019).
//
// A dense layer or convolution computes some of its outputs on each shard. Where layers in which channels do not meet
// lead from it to another one (activations, batch norm, dropout, pooling, flatten), that one takes the very units that
// its shard has, and what the shards add to its outputs is summed: one exchange forward, behind the second, and one
// backward, in front of the first. Where none follows, the units are gathered. All else runs whole on every shard.
//
// Tables of embeddings are cut by rows: each shard looks up the tokens that it has, and the sum of all is one exchange
// forward, none backward. A dense layer in front of a softmax cross-entropy keeps its classes: the loss gathers four
// numbers a label instead of the logits (model/losses/softmax.hpp).
//
// A recurrent layer computes some of its units on each shard, and states are gathered at every step: that pays where a
// step's product is long beside the meeting of the shards, so layers of few units stay whole.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"
#include "parallel/cut.hpp"

namespace echelon::inline parallel {

// [all * shard / shards, all * (shard + 1) / shards)
Units units_of(std::int64_t all, int shards, int shard);

struct TensorShardCoord {
  int stage = 0, shards = 1, shard = 0;
  std::int64_t recurrent_from = 0;  // recurrent layers of at least so many units are split; 0: none
};

// How its layers with weights are split, for people: "embedding by rows, 2 lstm by units, dense by classes; whole:
// layer_norm".
std::string shards_text(const Graph& graph, const TensorShardCoord& coord);

// The graph that one shard runs of a stage's (or of a whole model's); its cuts are added behind those that are there,
// the same on every shard. Layers of fewer units than shards stay whole. ConfigError where no layer can be split.
Graph shard_graph(const Graph& graph, const TensorShardCoord& coord, std::vector<Cut>& cuts);

}  // namespace echelon::inline parallel
