// Images split by their rows over the bands of a model group.
//
// Convolutions, pools and what works on each pixel alone run on each band's own rows, for which they fetch the rows
// that their windows reach from the bands above and below (model/rows.hpp). Each value's rows are cut where those of
// the value behind it are, times the stride: the last one evenly, the ones below at multiples of the strides, the
// image's edges to the outer bands. Batch norm sums over all bands. In front of anything else rows are gathered, and
// it runs whole on every band.
//
// Every band holds all parameters of its part: what it adds to the gradient of a convolution is what its rows give.
// What all bands compute alike is counted once, on the first.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "device/parameter.hpp"
#include "model/graph.hpp"
#include "model/window_pieces.hpp"
#include "parallel/cut.hpp"

namespace echelon {

// Where each band's rows of a value begin, and the end of the last one's; none: every band has all rows.
using RowCuts = std::vector<std::int64_t>;

// As even as it gets.
RowCuts even_cuts(std::int64_t rows, int bands);
// Of a layer's input, where its output's rows are cut so: windows reach as far over one side of a cut as over the
// other.
RowCuts cuts_below(const RowWindow& window, const RowCuts& output, std::int64_t rows);

// Which layers run on rows, and where each value's are cut. ConfigError, naming the layer, where a band would have no
// row or windows reach beyond a neighbour's.
class SpacePlan {
 public:
  SpacePlan(const Graph& graph, int bands);

  int bands() const { return bands_; }
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
  int bands_;
  std::vector<bool> on_rows_;
  std::vector<RowCuts> cuts_;
};

struct BandGraph {
  Graph graph;
  std::vector<int> stages;  // by its nodes
};

// What one band runs of the whole graph, and the stages of its nodes; its cuts are added, the same on every band.
BandGraph band_graph(const Graph& graph, const std::vector<int>& stages, const SpacePlan& plan, int band,
                     std::vector<Cut>& cuts);

// Gradients that a band other than the first leaves to it, in a graph in which the layers `on_rows` are a band's.
std::vector<ArenaRange> counted_elsewhere(const Graph& graph, const std::set<std::string>& on_rows);

}  // namespace echelon
