// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.hpp"
#include "model/splits/cut.hpp"

namespace echelon::inline parallel {
namespace {

int stage_of(const std::vector<int>& stages, int node) { return stages[static_cast<std::size_t>(node)]; }

// Copies the nodes of one stage.
class StageBuilder {
 public:
  StageBuilder(const Graph& whole, const std::vector<int>& stages, const std::vector<Cut>& cuts, int stage)
      : whole_(whole), stages_(stages), cuts_(cuts), stage_(stage), part_(whole.blank()) {}

  Graph build() {
    for (int i = 0; i < static_cast<int>(whole_.nodes().size()); ++i)
      if (stage_of(stages_, i) == stage_) add(i);
    return std::move(part_);
  }

 private:
  const Value& value(ValueId id) const { return whole_.values()[static_cast<std::size_t>(id)]; }

  void add(int index) {
    const Node& node = whole_.nodes()[static_cast<std::size_t>(index)];
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(here(id));
    const std::vector<ValueId> outputs = part_.add(node.name, node.layer, std::move(inputs), node.where, node.of);
    for (std::size_t i = 0; i < outputs.size(); ++i) here_[node.outputs[i]] = outputs[i];
    if (index == whole_.loss()) part_.set_loss(static_cast<int>(part_.nodes().size()) - 1);
    for (ValueId id : node.outputs)
      for (std::size_t cut = 0; cut < cuts_.size(); ++cut)
        if (cuts_[cut].kind == CutKind::message && cuts_[cut].value == value(id).name)
          part_.add("send " + std::to_string(cut), make_send(static_cast<int>(cut)), {here_.at(id)});
  }

  // The value in this stage's graph. An input of the model or a receive node is added at the first reader.
  ValueId here(ValueId id) {
    if (const auto found = here_.find(id); found != here_.end()) return found->second;
    const Value& read = value(id);
    if (read.producer < 0) return here_[id] = part_.input(read.name, read.shape, read.type);
    const auto cut = std::find_if(cuts_.begin(), cuts_.end(), [&](const Cut& c) {
      return c.kind == CutKind::message && c.value == read.name && c.to == stage_;
    });
    ECHELON_CHECK(cut != cuts_.end(), "no cut sends '{}' to stage {}", read.name, stage_);
    return here_[id] =
               part_.add(read.name, make_receive(static_cast<int>(cut - cuts_.begin()), read.shape, cut->learns), {})
                   .front();
  }

  const Graph& whole_;
  const std::vector<int>& stages_;
  const std::vector<Cut>& cuts_;
  int stage_;
  Graph part_;
  std::map<ValueId, ValueId> here_;
};

}  // namespace

std::vector<Cut> cuts_between(const Graph& graph, const std::vector<int>& stages) {
  std::vector<std::set<int>> readers(graph.values().size());  // stages that read each value
  for (int i = 0; i < static_cast<int>(graph.nodes().size()); ++i)
    for (ValueId id : graph.nodes()[static_cast<std::size_t>(i)].inputs)
      readers[static_cast<std::size_t>(id)].insert(stage_of(stages, i));
  std::vector<Cut> cuts;
  for (std::size_t id = 0; id < graph.values().size(); ++id) {
    const Value& value = graph.values()[id];
    if (value.producer < 0) continue;
    const int from = stage_of(stages, value.producer);
    for (int to : readers[id])
      if (to != from)
        cuts.push_back(
            {.value = value.name, .shape = value.shape, .from = from, .to = to, .learns = value.wants_gradient});
  }
  return cuts;
}

Graph stage_graph(const Graph& graph, const std::vector<int>& stages, const std::vector<Cut>& cuts, int stage) {
  return StageBuilder(graph, stages, cuts, stage).build();
}

std::vector<Pass> pipeline_passes(const std::string& schedule, int stages, int stage, int micro_batches) {
  const int ahead = schedule == "gpipe" ? micro_batches : std::min(micro_batches, stages - stage);
  std::vector<Pass> passes;
  for (int i = 0; i < ahead; ++i) passes.push_back({i, false});
  for (int i = 0; i < micro_batches; ++i) {
    passes.push_back({i, true});
    if (i + ahead < micro_batches) passes.push_back({i + ahead, false});
  }
  return passes;
}

int most_in_flight(const std::vector<Pass>& passes) {
  int now = 0, most = 0;
  for (const Pass& pass : passes) most = std::max(most, now += pass.backward ? -1 : 1);
  return most;
}

double bubble_share(int stages, int micro_batches, int chunks) {
  return static_cast<double>(stages - 1) / static_cast<double>(micro_batches * chunks + stages - 1);
}

}  // namespace echelon::inline parallel
