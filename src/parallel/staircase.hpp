// The staircase: a stack of recurrent layers on stages of a pipeline, time cut into chunks. While layer l works on
// chunk t, layer l + 1 works on t - 1: 1, 2, .. p stages are active, then all; backward the same from the other end.
//
// It is a rewrite of the graph. A layer that takes the steps of a sequence one by one (Layer::on_steps) becomes a node
// for each chunk, and these share its parameters; a recurrent layer's chunk begins with the states that the chunk
// before ended with, and hands their gradients back, so back-propagation through time is exact. Nodes are listed chunk
// by chunk; what crosses stages then does so chunk by chunk, like every other value (parallel/pipeline.hpp). A layer
// that sees all steps at once (attention, `reverse`, pooling, the loss) takes the chunks put together again: right, but
// nothing overlaps across it.
#pragma once

#include <string>
#include <vector>

#include "model/graph.hpp"

namespace echelon::inline parallel {

// As assign_stages, but of layers in the order of how many recurrent ones lie before them: the layers of an encoder and
// a decoder that are equally deep are neighbours, and not cut apart.
std::vector<int> staircase_stages(const Graph& whole, const std::vector<double>& costs, int stages);

struct Staircase {
  Graph graph;              // chunk t of layer "lstm1" is "lstm1@t"
  std::vector<int> stages;  // by its nodes
};

// `stages` by node of the whole graph. Chunk t of T steps is [T t / chunks, T (t + 1) / chunks). ConfigError where a
// sequence has fewer steps than chunks, or no recurrent layer runs onwards in time.
Staircase cut_time(const Graph& whole, const std::vector<int>& stages, int chunks);

// Layers of the whole graph that take a sequence and see all its steps at once, but for the loss.
std::vector<std::string> uncut_layers(const Graph& whole);

}  // namespace echelon::inline parallel
