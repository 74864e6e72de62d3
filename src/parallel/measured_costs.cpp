// SPDX-License-Identifier: Apache-2.0
#include "parallel/measured_costs.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "device/arenas.hpp"
#include "model/build.hpp"
#include "model/least_profile.hpp"
#include "parallel/pipeline.hpp"

namespace echelon::inline parallel {
namespace {

constexpr int kLeastPieces = 4;

// The piece of the model that each node is in; pieces have about equal FLOPs.
std::vector<int> pieces_of(const std::vector<double>& flops, int pieces) {
  const double all = std::accumulate(flops.begin(), flops.end(), 0.0);
  std::vector<int> of;
  double before = 0;
  for (const double cost : flops) {
    of.push_back(all > 0 ? std::min(pieces - 1, static_cast<int>(before / all * pieces)) : 0);
    before += cost;
  }
  return of;
}

// By name of the node: seconds of a micro-batch of sequences of `steps` steps, the least of some runs. Other inputs
// are zero, which is the initial content of memory.
std::map<std::string, double> measure(const Graph& part, Device& device, DType dtype, std::int64_t micro_batch,
                                      std::int64_t steps) {
  Arenas arenas(device, part.parameters(), wide_of(dtype));
  Program program(part, arenas, {.batch = micro_batch, .dtype = dtype});
  if (program.has_input("lengths")) {
    const std::vector<std::int32_t> lengths(static_cast<std::size_t>(micro_batch), static_cast<std::int32_t>(steps));
    device.to_device(program.input("lengths").data, lengths.data(), lengths.size() * sizeof(std::int32_t));
  }
  std::map<std::string, double> seconds;
  for (const OpReport& op : least_profile(program)) seconds[op.node] += op.seconds;
  return seconds;
}

}  // namespace

std::vector<double> measure_costs(const Graph& graph, Device& device, DType dtype, std::int64_t micro_batch, int rank,
                                  int ranks) {
  const int pieces = std::max(kLeastPieces, ranks);
  const std::vector<int> of = pieces_of(node_flops(graph, dtype), pieces);
  const std::vector<Cut> cuts = cuts_between(graph, of);
  const Shape& sample = graph.values()[static_cast<std::size_t>(graph.find("samples"))].shape;
  const std::int64_t steps = sample.rank() > 0 ? sample[0] : 1;
  std::map<std::string, double> seconds;
  for (int piece = rank; piece < pieces; piece += ranks)
    if (std::find(of.begin(), of.end(), piece) != of.end())
      seconds.merge(measure(stage_graph(graph, of, cuts, piece), device, dtype, micro_batch, steps));
  std::vector<double> costs;
  for (const Node& node : graph.nodes()) costs.push_back(seconds[node.name] / static_cast<double>(micro_batch));
  return costs;
}

}  // namespace echelon::inline parallel
