// SPDX-License-Identifier: Apache-2.0
// Time-chunk pipelines: a stack of recurrent layers on the stages of a pipeline, with the steps of each sequence cut
// into c chunks (parallel.time_chunks). While layer l works on chunk t, layer l + 1 works on chunk t - 1: the number of
// active stages rises from 1 to p, stays there and falls again, in both passes.
//
// This is a rewrite of the graph. A layer whose steps depend on each other only through recurrent states
// (LayerSplit::on_steps) becomes one node for each chunk; these nodes share its parameters. A chunk of a recurrent
// layer begins with the final states of the chunk before it and returns their gradients, so back-propagation through
// time is exact. Nodes are listed chunk by chunk, and values cross stages chunk by chunk like every other value
// (parallel/pipeline.hpp). A layer that reads all steps at once (attention, `reverse`, pooling, the loss) takes the
// joined chunks: the results are the same, without overlap across that layer.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"

namespace echelon::inline parallel {

// The stage of each node of the whole graph, in [0, stages), as assign_stages gives it for nodes sorted by depth, the
// number of recurrent layers on the way to them: recurrent layers of an encoder and a decoder at equal depth share a
// stage. `costs` by node, any unit. Throws what assign_stages throws.
std::vector<int> time_chunk_stages(const Graph& whole, const std::vector<double>& costs, int stages);

struct ChunkedGraph {
  Graph graph;              // chunk t of layer "lstm1" is the node "lstm1@t"
  std::vector<int> stages;  // by node of `graph`
};

// Returns the graph with each layer that can be cut as `chunks` nodes. `stages` by node of the whole graph. Chunk t of
// T steps is [T t / chunks, T (t + 1) / chunks). ConfigError with the layer's file:line if a sequence has fewer steps
// than chunks, or if the model has no recurrent layer that runs forward in time.
ChunkedGraph cut_time(const Graph& whole, const std::vector<int>& stages, int chunks);

// The names of the layers that take a sequence and read all its steps at once, without the loss: time chunks do not
// overlap across them.
std::vector<std::string> uncut_layers(const Graph& whole);

}  // namespace echelon::inline parallel
