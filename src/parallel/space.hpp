// SPDX-License-Identifier: Apache-2.0
// Spatial parallelism: the rows of images (C, H, W) divided over the spatial shards of a model group.
//
// Layers with LayerSplit::row_window (convolutions, pools, elementwise layers, batch norm) compute the spatial shard's
// own rows of their output. Rows that their windows read beyond the own rows of the input, the halo, are fetched from
// the the spatial shards above and below (model/splits/rows.hpp). The last value is cut evenly; the cuts of the value
// before a layer are those behind it times the stride, so that windows reach about as far over both sides of a cut.
// Batch norm sums over all spatial shards. Before a layer that needs whole images rows are gathered, and every spatial
// shard computes it. A layer on rows takes its rows of such a whole value; its gradient is summed over the spatial
// shards. A loss of places is computed from the rows of the labels. Each spatial shard reads only the rows of samples
// and labels that its layers take.
//
// Every spatial shard holds all parameters of its part and computes the addends of their gradients that come from its
// rows. Gradients that all spatial shards compute with the same values are counted on the first one alone.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "data/slab.hpp"
#include "device/parameter.hpp"
#include "model/graph.hpp"
#include "model/splits/window_pieces.hpp"
#include "parallel/cut.hpp"

namespace echelon::inline parallel {

// spatial_shards + 1 increasing rows: spatial shard s has rows [cuts[s], cuts[s + 1]) of a value. Empty: every spatial
// shard has all rows.
using RowCuts = std::vector<std::int64_t>;

// cuts[s] = rows * s / spatial_shards, rounded down.
RowCuts even_cuts(std::int64_t rows, int spatial_shards);
// The cuts of the `rows` rows of a layer's input if its output has the cuts `output`: windows reach equally far over
// both sides of each cut, up to one row.
RowCuts cuts_below(const RowWindow& window, const RowCuts& output, std::int64_t rows);

// An image (C, H, W) or a volume (C, D, H, W).
inline bool is_image(const Value& value) { return value.shape.rank() >= 3; }

// The rows of an input of the model that each spatial shard reads, along an axis of the input; no spans: all of them.
struct InputRows {
  int axis = 1;
  std::vector<RowSpan> spans = {};
};

// The layers that run on rows, and the cuts of each value. ConfigError with the layer's file:line if a spatial shard
// would have no row of its output, if a window reads rows beyond those of a neighbour, or if no layer can run on rows.
// Refers to `graph`, which must outlive it.
class SpacePlan {
 public:
  SpacePlan(const Graph& graph, int spatial_shards);

  int spatial_shards() const { return spatial_shards_; }
  // Whether the node computes the spatial shard's rows; false: it runs whole on every spatial shard.
  bool on_rows(int node) const { return on_rows_[static_cast<std::size_t>(node)]; }
  const RowCuts& cuts(ValueId value) const { return cuts_[static_cast<std::size_t>(value)]; }
  // The rows of a value that has cuts.
  RowSpan rows_of(ValueId value, int spatial_shard) const {
    const auto at = static_cast<std::size_t>(spatial_shard);
    return {cuts(value)[at], cuts(value)[at + 1]};
  }
  // Whether a layer on rows computes the value.
  bool has_rows(ValueId value) const;
  const InputRows& input_rows(ValueId value) const { return input_rows_[static_cast<std::size_t>(value)]; }
  // Returns the parts of samples and labels that a spatial shard reads.
  Slab slab(int spatial_shard) const;
  // The names of the nodes with on_rows.
  std::set<std::string> names() const;

 private:
  void choose_layers();
  void choose_cuts();
  void check() const;
  void choose_input_rows();
  bool takes_rows(int node) const;

  const Graph& graph_;
  int spatial_shards_;
  std::vector<bool> on_rows_;
  std::vector<RowCuts> cuts_;
  std::vector<InputRows> input_rows_;  // by value
};

struct SpatialShardGraph {
  Graph graph;
  std::vector<int> stages;  // by node of `graph`
};

// The graph of one spatial shard, with the nodes of all stages. `stages` by node of the whole graph. Appends its cuts
// to `cuts`, the same ones on every spatial shard.
SpatialShardGraph spatial_shard_graph(const Graph& graph, const std::vector<int>& stages, const SpacePlan& plan,
                                      int spatial_shard, std::vector<Cut>& cuts);

// The arena ranges of gradients that only spatial shard 0 adds to the sum over spatial shards, because all of them
// compute the same: parameters of layers that are not among the names `on_rows`, and statistics. `graph`: of the part.
std::vector<ArenaRange> counted_elsewhere(const Graph& graph, const std::set<std::string>& on_rows);

}  // namespace echelon::inline parallel
