// Images split by their rows over the spatial shards of a model group.
//
// Convolutions, pools and what works on each pixel alone run on each spatial shard's own rows, for which they fetch the
// rows that their windows reach from the spatial shards above and below (model/splits/rows.hpp). Each value's rows are
// cut where those of the value behind it are, times the stride: the last one evenly, the ones below at multiples of the
// strides, the image's edges to the outer spatial shards. Batch norm sums over all spatial shards. In front of anything
// else rows are gathered, and it runs whole on every spatial shard.
//
// Every spatial shard holds all parameters of its part: what it adds to the gradient of a convolution is what its rows
// give. What all spatial shards compute alike is counted once, on the first.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "device/parameter.hpp"
#include "model/graph.hpp"
#include "model/splits/window_pieces.hpp"
#include "parallel/cut.hpp"

namespace echelon::inline parallel {

// Where each spatial shard's rows of a value begin, and the end of the last one's; none: every spatial shard has all
// rows.
using RowCuts = std::vector<std::int64_t>;

// As even as it gets.
RowCuts even_cuts(std::int64_t rows, int spatial_shards);
// Of a layer's input, where its output's rows are cut so: windows reach as far over one side of a cut as over the
// other.
RowCuts cuts_below(const RowWindow& window, const RowCuts& output, std::int64_t rows);

// Which layers run on rows, and where each value's are cut. ConfigError, naming the layer, where a spatial shard would
// have no row or windows reach beyond a neighbour's.
class SpacePlan {
 public:
  SpacePlan(const Graph& graph, int spatial_shards);

  int spatial_shards() const { return spatial_shards_; }
  bool on_rows(int node) const { return on_rows_[static_cast<std::size_t>(node)]; }
  const RowCuts& cuts(ValueId value) const { return cuts_[static_cast<std::size_t>(value)]; }
  // Names of the layers.
  std::set<std::string> names() const;

 private:
  void choose_layers();
  void choose_cuts();
  void check() const;
  bool takes_rows(const Node& node) const;

  const Graph& graph_;
  int spatial_shards_;
  std::vector<bool> on_rows_;
  std::vector<RowCuts> cuts_;
};

struct SpatialShardGraph {
  Graph graph;
  std::vector<int> stages;  // by its nodes
};

// What one spatial shard runs of the whole graph, and the stages of its nodes; its cuts are added, the same on every
// spatial shard.
SpatialShardGraph spatial_shard_graph(const Graph& graph, const std::vector<int>& stages, const SpacePlan& plan,
                                      int spatial_shard, std::vector<Cut>& cuts);

// Gradients that a spatial shard other than the first leaves to it, in a graph in which the layers `on_rows` are a
// spatial shard's.
std::vector<ArenaRange> counted_elsewhere(const Graph& graph, const std::set<std::string>& on_rows);

}  // namespace echelon::inline parallel
