// SPDX-License-Identifier: Apache-2.0
// Tensor parallelism: layers split by their units over the shards of a stage (Megatron-LM, Shoeybi et al. 2019).
//
// A dense layer or convolution computes some of its outputs on each shard (column parallel). Where only layers that
// treat each channel separately (activations, batch norm, dropout, pooling, flatten) lie between it and another dense
// layer or convolution, that one takes the units of its shard as inputs (row parallel), and the outputs of all shards
// are summed: one all-reduce forward, behind the second layer, and one backward, in front of the first. Where no such
// layer follows, the units are gathered. All other layers run whole on every shard.
//
// Tables of embeddings are split by rows: each shard looks up its own tokens, and the results are summed, one
// all-reduce forward and none backward. A dense layer in front of a softmax cross-entropy keeps its classes: the loss
// gathers four numbers per label instead of the logits (model/splits/softmax_part.hpp).
//
// A recurrent layer computes some units of its state on each shard, and states are gathered at every step. That is
// faster if the product of a step takes long compared with a gather, so layers with few units stay whole.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"
#include "parallel/cut.hpp"

namespace echelon::inline parallel {

// The units of one shard: [all * shard / shards, all * (shard + 1) / shards), rounded down.
Units units_of(std::int64_t all, int shards, int shard);

struct TensorShardCoord {
  int stage = 0, shards = 1, shard = 0;
  std::int64_t recurrent_from = 0;  // recurrent layers with at least this many units are split; 0: none
};

// How the layers of `graph` with parameters are split, for the user: "embedding by rows, 2 lstm by units, dense by
// classes; whole: layer_norm".
std::string shards_text(const Graph& graph, const TensorShardCoord& coord);

// Returns the graph of one shard of `graph`, a stage or a whole model. Appends its cuts to `cuts`, which are the same
// on every shard. Layers with fewer units than shards stay whole. ConfigError if no layer can be split.
Graph shard_graph(const Graph& graph, const TensorShardCoord& coord, std::vector<Cut>& cuts);

}  // namespace echelon::inline parallel
