// SPDX-License-Identifier: Apache-2.0
#include "parallel/space.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon::inline parallel {
namespace {

[[noreturn]] void refuse(const Node& node, int spatial_shards, const std::string& why) {
  throw ConfigError(fmt::format("{}{}layer '{}' ({}) with parallel.space = {}: {}", node.where,
                                node.where.empty() ? "" : ": ", node.name, node.layer->kind(), spatial_shards, why));
}

bool rising(const RowCuts& cuts) {
  return std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) == cuts.end();
}

}  // namespace

RowCuts even_cuts(std::int64_t rows, int spatial_shards) {
  RowCuts cuts;
  for (int spatial_shard = 0; spatial_shard <= spatial_shards; ++spatial_shard)
    cuts.push_back(rows * spatial_shard / spatial_shards);
  return cuts;
}

RowCuts cuts_below(const RowWindow& window, const RowCuts& output, std::int64_t rows) {
  const std::int64_t above = std::max<std::int64_t>(0, (window.reach - window.stride + 1) / 2);
  RowCuts cuts;
  for (const std::int64_t row : output)
    cuts.push_back(std::clamp<std::int64_t>(
        window.up > 1 ? (row + window.up / 2) / window.up : row * window.stride - window.padding + above, 0, rows));
  cuts.front() = 0;
  cuts.back() = rows;
  return cuts;
}

SpacePlan::SpacePlan(const Graph& graph, int spatial_shards)
    : graph_(graph),
      spatial_shards_(spatial_shards),
      on_rows_(graph.nodes().size(), false),
      cuts_(graph.values().size()),
      input_rows_(graph.values().size()) {
  choose_layers();
  choose_cuts();
  check();
  choose_input_rows();
}

std::set<std::string> SpacePlan::names() const {
  std::set<std::string> names;
  for (std::size_t i = 0; i < on_rows_.size(); ++i)
    if (on_rows_[i]) names.insert(graph_.nodes()[i].name);
  return names;
}

// Whether the node's output and inputs are images, and one of these is a sample of the model or computed by rows. The
// loss takes rows of labels for those of its first input.
bool SpacePlan::takes_rows(int index) const {
  const Node& node = graph_.nodes()[static_cast<std::size_t>(index)];
  bool any = false;
  for (ValueId id : node.inputs) {
    const Value& value = graph_.values()[static_cast<std::size_t>(id)];
    const bool is_given = value.producer < 0;
    if (!is_given && !is_image(value)) return false;
    if (id == node.inputs.front() || index != graph_.loss())
      any |= is_image(value) && (is_given || on_rows(value.producer));
  }
  return any && is_image(graph_.values()[static_cast<std::size_t>(node.outputs[0])]);
}

void SpacePlan::choose_layers() {
  for (std::size_t i = 0; i < on_rows_.size(); ++i) {
    const Node& node = graph_.nodes()[i];
    if (!takes_rows(static_cast<int>(i))) continue;
    on_rows_[i] = layer_split(*node.layer).row_window().has_value();
    const std::int64_t rows = graph_.values()[static_cast<std::size_t>(node.outputs[0])].shape[1];
    if (on_rows_[i] && rows < spatial_shards_)
      refuse(node, spatial_shards_,
             fmt::format("its output has {}, and each rank needs at least one; use at most {}", counted(rows, "row"),
                         counted(rows, "rank")));
  }
  if (std::none_of(on_rows_.begin(), on_rows_.end(), [](bool on) { return on; }))
    throw ConfigError(fmt::format(
        "parallel.space = {} splits the rows of images, but no layer of this model has images; use parallel.space = 1",
        spatial_shards_));
}

bool SpacePlan::has_rows(ValueId id) const {
  const int producer = graph_.values()[static_cast<std::size_t>(id)].producer;
  return producer >= 0 && on_rows(producer);
}

// From the last layer to the first: the last reader of a value determines its cuts.
void SpacePlan::choose_cuts() {
  for (int i = static_cast<int>(on_rows_.size()) - 1; i >= 0; --i) {
    if (!on_rows(i)) continue;
    const Node& node = graph_.nodes()[static_cast<std::size_t>(i)];
    const auto rows_of = [&](ValueId id) { return graph_.values()[static_cast<std::size_t>(id)].shape[1]; };
    RowCuts& output = cuts_[static_cast<std::size_t>(node.outputs[0])];
    if (output.empty()) output = even_cuts(rows_of(node.outputs[0]), spatial_shards_);
    for (ValueId id : node.inputs) {
      RowCuts& input = cuts_[static_cast<std::size_t>(id)];
      if (!has_rows(id) || !input.empty()) continue;
      input = cuts_below(*layer_split(*node.layer).row_window(), output, rows_of(id));
      if (!rising(input)) input = even_cuts(rows_of(id), spatial_shards_);
    }
  }
}

void SpacePlan::check() const {
  for (int i = 0; i < static_cast<int>(on_rows_.size()); ++i) {
    if (!on_rows(i)) continue;
    const Node& node = graph_.nodes()[static_cast<std::size_t>(i)];
    for (ValueId id : node.inputs) {
      const RowCuts& in = cuts(id);
      for (int spatial_shard = 0; spatial_shard < spatial_shards_ && !in.empty(); ++spatial_shard) {
        const RowSpan seen = rows_seen(*layer_split(*node.layer).row_window(), rows_of(node.outputs[0], spatial_shard));
        const RowSpan own = rows_of(id, spatial_shard);
        const std::int64_t from = in[static_cast<std::size_t>(std::max(0, spatial_shard - 1))];
        const std::int64_t to = in[static_cast<std::size_t>(std::min(spatial_shards_, spatial_shard + 2))];
        const bool meets = seen.begin <= own.end && seen.end >= own.begin;
        if (meets && std::max<std::int64_t>(0, seen.begin) >= from && std::min(seen.end, in.back()) <= to) continue;
        refuse(node, spatial_shards_,
               fmt::format(
                   "rank {} has rows {} to {} of its input's {}, but reads rows {} to {}, which are beyond those of "
                   "its neighbours; use fewer ranks",
                   spatial_shard, own.begin, own.end - 1, in.back(), std::max<std::int64_t>(0, seen.begin),
                   std::min(seen.end, in.back()) - 1));
      }
    }
  }
}

// Inputs that every reader takes by rows are read by rows: those of all readers, and what lies between them.
void SpacePlan::choose_input_rows() {
  std::set<ValueId> whole;
  for (int i = 0; i < static_cast<int>(on_rows_.size()); ++i) {
    const Node& node = graph_.nodes()[static_cast<std::size_t>(i)];
    for (ValueId id : node.inputs) {
      const Value& value = graph_.values()[static_cast<std::size_t>(id)];
      if (value.producer >= 0 || value.shape.rank() == 0) continue;
      InputRows& rows = input_rows_[static_cast<std::size_t>(id)];
      const int rank = graph_.values()[static_cast<std::size_t>(node.outputs[0])].shape.rank();
      rows.axis = value.shape.rank() == rank ? 1 : 0;
      if (!on_rows(i)) whole.insert(id);
      for (int spatial_shard = 0; on_rows(i) && spatial_shard < spatial_shards_; ++spatial_shard) {
        const RowSpan seen = rows_seen(*layer_split(*node.layer).row_window(), rows_of(node.outputs[0], spatial_shard));
        const RowSpan there = {std::max<std::int64_t>(0, seen.begin), std::min(seen.end, value.shape[rows.axis])};
        if (std::ssize(rows.spans) == spatial_shard) rows.spans.push_back(there);
        RowSpan& all = rows.spans[static_cast<std::size_t>(spatial_shard)];
        all = {std::min(all.begin, there.begin), std::max(all.end, there.end)};
      }
    }
  }
  for (ValueId id : whole) input_rows_[static_cast<std::size_t>(id)].spans.clear();
}

Slab SpacePlan::slab(int spatial_shard) const {
  const auto range_of = [&](const char* name) -> SlabRange {
    const InputRows& rows = input_rows(graph_.find(name));
    if (rows.spans.empty()) return {};
    const RowSpan own = rows.spans[static_cast<std::size_t>(spatial_shard)];
    return {.axis = rows.axis, .begin = own.begin, .end = own.end};
  };
  return {.samples = range_of("samples"), .labels = range_of("labels")};
}

}  // namespace echelon::inline parallel
