// SPDX-License-Identifier: Apache-2.0
#include "parallel/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace echelon::inline parallel {
namespace {

bool by_hand(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) { return node.stage >= 0; });
}

std::string place_of(const Node& node) { return node.where.empty() ? "" : node.where + ": "; }

std::vector<int> given_stages(const Graph& graph, int stages) {
  std::vector<int> of(graph.nodes().size());
  int now = 0, last = -1;  // the stage of the node before, the last stage so far
  for (std::size_t i = 0; i < of.size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.stage >= 0) {
      if (node.stage > last + 1 || node.stage >= stages)
        throw ConfigError(
            fmt::format("{}layer '{}' has stage = {} after stage {}; stages must run from 0 to {} without a gap",
                        place_of(node), node.name, node.stage, now, stages - 1));
      now = node.stage;
    }
    of[i] = now;
    last = std::max(last, now);
    for (ValueId id : node.inputs)
      if (const int from = graph.values()[static_cast<std::size_t>(id)].producer;
          from >= 0 && of[static_cast<std::size_t>(from)] > now)
        throw ConfigError(
            fmt::format("{}layer '{}' is on stage {}, but takes '{}' of stage {}; values can only go from earlier "
                        "stages to later ones",
                        place_of(node), node.name, now, graph.values()[static_cast<std::size_t>(id)].name,
                        of[static_cast<std::size_t>(from)]));
  }
  if (now != stages - 1)
    throw ConfigError(fmt::format("the stages of the layers end with {}, but parallel.pipeline = {} has stages 0 to {}",
                                  now, stages, stages - 1));
  return of;
}

// By node: the elements of one sample that earlier nodes compute and that it or later nodes read.
std::vector<double> crossing_elems(const Graph& graph) {
  const auto nodes = graph.nodes().size();
  std::vector<int> last_reader(graph.values().size(), -1);
  for (std::size_t i = 0; i < nodes; ++i)
    for (ValueId id : graph.nodes()[i].inputs) last_reader[static_cast<std::size_t>(id)] = static_cast<int>(i);
  std::vector<double> crossing(nodes + 1);
  for (std::size_t id = 0; id < graph.values().size(); ++id) {
    const Value& value = graph.values()[id];
    for (int node = value.producer + 1; value.producer >= 0 && node <= last_reader[id]; ++node)
      crossing[static_cast<std::size_t>(node)] += static_cast<double>(value.shape.elems());
  }
  return crossing;
}

// (cost of the slowest stage, values that cross): less is better, in this order.
using Rating = std::pair<double, double>;

}  // namespace

std::string stage_text(const Graph& graph, const std::vector<int>& stages, int stage) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < stages.size(); begin = end + 1) {
    for (end = begin; end < stages.size() && stages[end] == stage;) ++end;
    if (end == begin) continue;
    const std::vector<Node>& nodes = graph.nodes();
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", nodes[begin].name,
                        end - begin > 1 ? " to " + nodes[end - 1].name : "");
  }
  return text;
}

std::vector<int> assign_stages(const Graph& graph, const std::vector<double>& costs, int stages,
                               const std::vector<bool>& together) {
  const int nodes = static_cast<int>(graph.nodes().size());
  ECHELON_CHECK_EQ(costs.size(), graph.nodes().size());
  if (stages > nodes)
    throw ConfigError(fmt::format(
        "parallel.pipeline = {} has more stages than the model has layers ({}); use at most {}", stages, nodes, nodes));
  if (by_hand(graph)) return given_stages(graph, stages);
  if (const auto most = nodes - std::count(together.begin(), together.end(), true); stages > most)
    throw ConfigError(
        fmt::format("parallel.pipeline = {} has more stages than the model can be cut into, because recurrent "
                    "layers of equal depth share a stage; use at most {}",
                    stages, most));
  std::vector<double> before(costs.size() + 1);
  for (std::size_t i = 0; i < costs.size(); ++i) before[i + 1] = before[i] + costs[i];
  const std::vector<double> crossing = crossing_elems(graph);
  // best[s][n]: the first n nodes on s + 1 stages; from[s][n]: where its last stage begins.
  const auto width = costs.size() + 1;
  const Rating never{std::numeric_limits<double>::infinity(), 0};
  std::vector<std::vector<Rating>> best(static_cast<std::size_t>(stages), std::vector<Rating>(width, never));
  std::vector<std::vector<int>> from(best.size(), std::vector<int>(width, 0));
  for (std::size_t n = 1; n < width; ++n) best[0][n] = {before[n], 0};
  for (std::size_t s = 1; s < best.size(); ++s)
    for (std::size_t n = s + 1; n < width; ++n)
      for (std::size_t begin = s; begin < n; ++begin) {
        if (!together.empty() && together[begin]) continue;
        const Rating& head = best[s - 1][begin];
        const Rating rating{std::max(head.first, before[n] - before[begin]), head.second + crossing[begin]};
        if (rating < best[s][n]) best[s][n] = rating, from[s][n] = static_cast<int>(begin);
      }
  std::vector<int> of(costs.size());
  int end = nodes;
  for (int s = stages - 1; s >= 0; --s) {
    const int begin = s == 0 ? 0 : from[static_cast<std::size_t>(s)][static_cast<std::size_t>(end)];
    std::fill(of.begin() + begin, of.begin() + end, s);
    end = begin;
  }
  return of;
}

}  // namespace echelon::inline parallel
