// SPDX-License-Identifier: Apache-2.0
#include "planner/mesh_models.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "exchange/entry.hpp"
#include "model/build.hpp"
#include "optim/rules.hpp"
#include "parallel/choose.hpp"

namespace echelon::inline planner {
namespace {

constexpr std::size_t kShown = 6;

// Seconds per sample by node: the step's time times the node's share of the FLOPs.
std::vector<double> node_seconds(const MeshRequest& request) {
  std::vector<double> seconds = node_flops(request.graph, request.config.device.dtype);
  double all = 0;
  for (const double flops : seconds) all += flops;
  const double sample_s = (request.step.forward_s + request.step.backward_s) / request.step.samples;
  for (double& node : seconds) node *= sample_s / std::max(all, 1.0);
  return seconds;
}

SplitCosts costs_of(const MeshRequest& request) {
  SplitCosts costs{.node_s = node_seconds(request), .network = request.network.network};
  const double bytes = static_cast<double>(request.graph.parameters().elems()) *
                       static_cast<double>(size_of(wide_of(request.config.device.dtype)));
  const double states = static_cast<double>(rule_of(request.config.optimiser).arenas());
  // price_split counts the pass like this: it reads gradients once, and reads and writes the weights and each state.
  constexpr double kLeast_s = 1e-9;  // a described step may have no optimiser
  costs.memory_bytes_per_s = bytes * (3 + 2 * states) / std::max(kLeast_s, request.step.optimiser_s);
  return costs;
}

RankHosts hosts_of(int ranks, int ranks_per_host) {
  RankHosts hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.of_rank.push_back(rank / ranks_per_host);
  for (int host = 0; host <= hosts.of_rank.back(); ++host) hosts.names.push_back("host " + std::to_string(host));
  return hosts;
}

}  // namespace

std::vector<MeshForecast> mesh_forecasts(const MeshRequest& request, int ranks) {
  Config config = request.config;
  config.batch.scale_with_replicas = false;
  config.batch.global = std::llround(request.step.samples * (request.strong ? 1 : ranks));
  const double limit = config.device.memory_limit_mb * 1024 * 1024;
  config.device.memory_limit_mb = 0;  // meshes above the limit are shown too
  const SplitChoice choice =
      choose_split(config, request.graph, hosts_of(ranks, request.network.ranks_per_host),
                   {.train = config.batch.global, .test = 0}, costs_of(request), exchange_arenas);
  std::vector<MeshForecast> meshes;
  bool found = false;
  for (const SplitCandidate& candidate : choice.candidates) {
    if (!candidate.refused.empty() || candidate.memory < 0 || meshes.size() == kShown) continue;
    const bool fits = limit == 0 || candidate.memory <= limit;
    meshes.push_back({.ranks = ranks,
                      .mesh = candidate.mesh.text(),
                      .price = candidate.price,
                      .samples_per_s = candidate.samples_per_s,
                      .memory = candidate.memory,
                      .verdict = !fits    ? "too large"
                                 : !found ? "fastest"
                                          : ""});
    found = found || fits;
  }
  return meshes;
}

}  // namespace echelon::inline planner
