// SPDX-License-Identifier: Apache-2.0
// The graph of one spatial shard.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/check.hpp"
#include "model/splits/cut.hpp"
#include "model/splits/rows.hpp"
#include "parallel/space.hpp"

namespace echelon::inline parallel {
namespace {

class SpatialShardBuilder {
 public:
  SpatialShardBuilder(const Graph& whole, const std::vector<int>& stages, const SpacePlan& plan, int spatial_shard,
                      std::vector<Cut>& cuts)
      : whole_(whole), stages_(stages), plan_(plan), spatial_shard_(spatial_shard), cuts_(cuts) {
    spatial_shard_graph_.graph = whole.blank();
  }

  SpatialShardGraph build() {
    for (std::size_t id = 0; id < whole_.values().size(); ++id)
      if (const Value& value = whole_.values()[id]; value.producer < 0)
        here_[static_cast<ValueId>(id)] =
            spatial_shard_graph_.graph.input(value.name, shape_here(static_cast<ValueId>(id)), value.type);
    for (int i = 0; i < static_cast<int>(whole_.nodes().size()); ++i) add(i);
    return std::move(spatial_shard_graph_);
  }

 private:
  const Value& value(ValueId id) const { return whole_.values()[static_cast<std::size_t>(id)]; }

  // The shape of an input of the model on this spatial shard.
  Shape shape_here(ValueId id) const {
    const InputRows& rows = plan_.input_rows(id);
    if (rows.spans.empty()) return value(id).shape;
    return value(id).shape.with(rows.axis, rows.spans[static_cast<std::size_t>(spatial_shard_)].count());
  }

  std::vector<ValueId> put(int stage, const std::string& name, const LayerPtr& layer, std::vector<ValueId> inputs,
                           const std::string& where) {
    spatial_shard_graph_.stages.push_back(stage);
    return spatial_shard_graph_.graph.add(name, layer, std::move(inputs), where);
  }

  void add(int index) {
    const Node& node = whole_.nodes()[static_cast<std::size_t>(index)];
    const int stage = stages_[static_cast<std::size_t>(index)];
    const bool on_rows = plan_.on_rows(index);
    std::vector<ValueId> inputs;
    LayerPtr layer = node.layer;
    if (!on_rows) {
      for (ValueId id : node.inputs) inputs.push_back(whole(id, stage));
    } else if (const RowWindow window = *layer_split(*layer).row_window(); window.in_pieces && reaches_out(node)) {
      const Sight sight = sight_of(node.inputs[0], node);
      const RowSpan own = plan_.rows_of(node.outputs[0], spatial_shard_);
      layer = make_rows_window(
          layer, fetch_of(node.inputs[0], sight, stage), {own.begin, own.end, plan_.cuts(node.outputs[0]).back()},
          rows_seen(window, own).begin - sight.own[static_cast<std::size_t>(spatial_shard_)].begin);
      inputs.push_back(read(node.inputs[0], stage));
    } else {
      for (ValueId id : node.inputs) inputs.push_back(is_image(value(id)) ? rows(id, node, stage) : here_.at(id));
      const RowCuts& cuts = plan_.cuts(node.outputs[0]);
      const RowSpan own = plan_.rows_of(node.outputs[0], spatial_shard_);
      const int cut = sums_cut(node, stage);
      layer = layer_split(*layer).on_rows({own.begin, own.end, cuts.back()}, cut);
    }
    const std::vector<ValueId> outputs = put(stage, node.name, layer, std::move(inputs), node.where);
    for (std::size_t i = 0; i < outputs.size(); ++i) here_[node.outputs[i]] = outputs[i];
    if (on_rows)
      ECHELON_CHECK_EQ(spatial_shard_graph_.graph.values()[static_cast<std::size_t>(outputs[0])].shape[1],
                       plan_.rows_of(node.outputs[0], spatial_shard_).count(),
                       "the output of '{}' has the wrong number of rows on spatial shard {}", node.name,
                       spatial_shard_);
    if (index == whole_.loss())
      spatial_shard_graph_.graph.set_loss(static_cast<int>(spatial_shard_graph_.graph.nodes().size()) - 1);
  }

  int new_cut(Cut cut) {
    cuts_.push_back(std::move(cut));
    return static_cast<int>(cuts_.size()) - 1;
  }

  // The cut at which a layer's sums over rows are added; -1: it takes none.
  int sums_cut(const Node& node, int stage) {
    const std::optional<RowSums> sums = layer_split(*node.layer).row_sums(value(node.outputs[0]).shape);
    if (!sums) return -1;
    const CutKind kind = sums->per_sample ? CutKind::sample_sums : CutKind::statistics;
    return new_cut({.value = node.name, .shape = sums->shape, .kind = kind, .from = stage, .to = stage});
  }

  // The value with all its rows, gathered at most once on each stage.
  ValueId whole(ValueId id, int stage) {
    const RowCuts& cuts = plan_.cuts(id);
    if (cuts.empty()) return here_.at(id);
    const auto [found, fresh] = whole_here_.try_emplace({id, stage}, -1);
    if (!fresh) return found->second;
    Cut cut{.value = value(id).name, .shape = value(id).shape, .kind = CutKind::rows, .from = stage, .to = stage};
    for (int spatial_shard = 0; spatial_shard < plan_.spatial_shards(); ++spatial_shard) {
      cut.counts.push_back(plan_.rows_of(id, spatial_shard).count());
    }
    const RowSpan own = plan_.rows_of(id, spatial_shard_);
    const int number = new_cut(std::move(cut));
    const LayerPtr layer = make_gather_rows(number, {own.begin, own.end, cuts.back()});
    return found->second = put(stage, fmt::format("gather rows {}", number), layer, {here_.at(id)}, {}).front();
  }

  // The value as a layer on rows reads it: own rows, an input of the model, or a whole value, whose gradient is then
  // the sum of those that spatial shards have for their rows of it.
  ValueId read(ValueId id, int stage) {
    if (value(id).producer < 0 || plan_.has_rows(id)) return here_.at(id);
    const auto [found, fresh] = whole_here_.try_emplace({id, stage}, -1);
    if (!fresh) return found->second;
    const int number = new_cut(
        {.value = value(id).name, .shape = value(id).shape, .kind = CutKind::row_sum, .from = stage, .to = stage});
    return found->second =
               put(stage, fmt::format("spread {}", number), make_spread(number), {here_.at(id)}, {}).front();
  }

  // The rows of the input that the windows of a spatial shard read. Fewer than `stride` own rows behind them are left
  // in, because a layer ignores them.
  static RowSpan needed(const RowWindow& window, const RowSpan& output, const RowSpan& own) {
    RowSpan seen = rows_seen(window, output);
    if (seen.end < own.end && own.end - seen.end < window.stride) seen.end = own.end;
    return seen;
  }

  // By spatial shard: its own rows of a value, and the rows that a node reads there.
  struct Sight {
    std::vector<RowSpan> own, seen;
  };
  Sight sight_of(ValueId id, const Node& node) const {
    const RowWindow window = *layer_split(*node.layer).row_window();
    const RowCuts& cuts = plan_.cuts(id);
    const RowSpan image = {0, value(id).shape[1]};
    Sight sight;
    for (int spatial_shard = 0; spatial_shard < plan_.spatial_shards(); ++spatial_shard) {
      const std::vector<RowSpan>& given = plan_.input_rows(id).spans;
      sight.own.push_back(!cuts.empty()   ? plan_.rows_of(id, spatial_shard)
                          : given.empty() ? image
                                          : given[static_cast<std::size_t>(spatial_shard)]);
      const RowSpan output = plan_.rows_of(node.outputs[0], spatial_shard);
      RowSpan seen = cuts.empty() ? rows_seen(window, output) : needed(window, output, sight.own.back());
      if (window.pads) seen = {std::max(seen.begin, image.begin), std::min(seen.end, image.end)};
      sight.seen.push_back(seen);
    }
    return sight;
  }

  // Whether some spatial shard reads rows other than its own.
  bool reaches_out(const Node& node) const {
    const Sight sight = sight_of(node.inputs[0], node);
    return sight.own != sight.seen;
  }

  // The rows of the value that the node reads, own rows and halo.
  ValueId rows(ValueId id, const Node& node, int stage) {
    const Sight sight = sight_of(id, node);
    if (sight.own == sight.seen) return read(id, stage);
    const auto [found, fresh] = fetched_.try_emplace({id, stage, sight.seen}, -1);
    if (!fresh) return found->second;
    const std::string name = fmt::format("rows of {} {}", value(id).name, fetched_.size());
    return found->second = put(stage, name, make_rows(fetch_of(id, sight, stage)), {read(id, stage)}, {}).front();
  }

  // Appends the halo cuts of all spatial shards, and returns the exchange of this one.
  RowsFetch fetch_of(ValueId id, const Sight& sight, int stage) {
    const std::vector<RowSpan>&own = sight.own, &seen = sight.seen;
    const std::int64_t all = value(id).shape[1];
    const auto at = static_cast<std::size_t>(spatial_shard_);
    RowsFetch fetch{.above = {},
                    .below = {},
                    .first = std::max(seen[at].begin, own[at].begin) - own[at].begin,
                    .end = std::min(seen[at].end, own[at].end) - own[at].begin};
    fetch.above.padding = std::max<std::int64_t>(0, -seen[at].begin);
    fetch.below.padding = std::max<std::int64_t>(0, seen[at].end - all);
    for (int upper = 0; upper + 1 < plan_.spatial_shards() && !plan_.cuts(id).empty(); ++upper) {
      const auto u = static_cast<std::size_t>(upper);
      const std::int64_t border = own[u].end;
      const std::int64_t down = std::max<std::int64_t>(0, border - std::max<std::int64_t>(0, seen[u + 1].begin));
      const std::int64_t up = std::max<std::int64_t>(0, std::min(seen[u].end, all) - border);
      const int down_cut = halo_cut(id, stage, upper, upper + 1, down);
      const int up_cut = halo_cut(id, stage, upper + 1, upper, up);
      const std::int64_t below = fetch.below.padding, above = fetch.above.padding;
      if (spatial_shard_ == upper)
        fetch.below = {.out_cut = down_cut, .in_cut = up_cut, .out = down, .in = up, .padding = below};
      if (spatial_shard_ == upper + 1)
        fetch.above = {.out_cut = up_cut, .in_cut = down_cut, .out = up, .in = down, .padding = above};
    }
    return fetch;
  }

  int halo_cut(ValueId id, int stage, int from, int to, std::int64_t rows) {
    if (rows == 0) return -1;
    return new_cut({.value = value(id).name,
                    .shape = value(id).shape.with(1, rows),
                    .kind = CutKind::halo,
                    .from = stage,
                    .to = stage,
                    .from_spatial_shard = from,
                    .to_spatial_shard = to,
                    .learns = value(id).wants_gradient});
  }

  const Graph& whole_;
  const std::vector<int>& stages_;
  const SpacePlan& plan_;
  const int spatial_shard_;
  std::vector<Cut>& cuts_;
  SpatialShardGraph spatial_shard_graph_;
  std::map<ValueId, ValueId> here_;  // by value of the whole graph: the value here, or its own rows
  // By value and stage: gathered rows, or a whole value whose rows are read.
  std::map<std::pair<ValueId, int>, ValueId> whole_here_;
  std::map<std::tuple<ValueId, int, std::vector<RowSpan>>, ValueId> fetched_;  // also by rows of each spatial shard
};

}  // namespace

SpatialShardGraph spatial_shard_graph(const Graph& graph, const std::vector<int>& stages, const SpacePlan& plan,
                                      int spatial_shard, std::vector<Cut>& cuts) {
  return SpatialShardBuilder(graph, stages, plan, spatial_shard, cuts).build();
}

std::vector<ArenaRange> counted_elsewhere(const Graph& graph, const std::set<std::string>& on_rows) {
  std::vector<ArenaRange> ranges;
  for (const Node& node : graph.nodes())
    for (int index : node.parameters)
      if (const Parameter& p = graph.parameters()[index];
          !p.frozen && (!on_rows.contains(node.name) || p.kind == ParameterKind::statistic))
        ranges.push_back({p.begin, p.end()});
  return ranges;
}

}  // namespace echelon::inline parallel
