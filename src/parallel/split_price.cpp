// SPDX-License-Identifier: Apache-2.0
#include "parallel/split_price.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "model/build.hpp"
#include "optim/rules.hpp"

namespace echelon::inline parallel {
namespace {

constexpr double kBackward = 2.0 / 3;  // share of back-propagation, which overlaps with exchanges, in compute time

// The cost and the FLOPs of each node of the whole model, by name.
struct WholeCost {
  double seconds = 0, flops = 0;
};
std::map<std::string, WholeCost> by_name(const Graph& whole, const std::vector<double>& seconds, DType dtype) {
  const std::vector<double> flops = node_flops(whole, dtype);
  std::map<std::string, WholeCost> all;
  for (std::size_t i = 0; i < flops.size(); ++i) all[whole.nodes()[i].name] = {seconds[i], flops[i]};
  return all;
}

// Seconds per sample.
double compute_s(const Graph& part, const std::map<std::string, WholeCost>& whole, DType dtype) {
  const std::vector<double> flops = node_flops(part, dtype);
  double seconds = 0;
  for (std::size_t i = 0; i < flops.size(); ++i)
    if (const auto found = whole.find(part.nodes()[i].of); found != whole.end())
      seconds += found->second.seconds * (found->second.flops > 0 ? flops[i] / found->second.flops : 1);
  return seconds;
}

// Seconds of a collective over the ranks of a group for a tensor of `bytes`.
double sum_s(double ranks, double bytes, const Link& link) {
  return 2 * std::ceil(std::log2(ranks)) * link.latency_s + 2 * (ranks - 1) / ranks * bytes / link.bytes_per_s;
}
double gather_s(double ranks, double bytes, const Link& link) {
  return (ranks - 1) * link.latency_s + (ranks - 1) / ranks * bytes / link.bytes_per_s;
}

// Seconds of the exchanges of a rank at these coordinates for one micro-batch of `micro` samples, forward and backward.
double transfer_s(const std::vector<Cut>& cuts, const MeshCoord& coord, const Mesh& mesh, double micro, DType dtype,
                  const Link& link) {
  double seconds = 0;
  for (const Cut& cut : cuts) {
    if (cut.from != coord.stage && cut.to != coord.stage) continue;
    if (cut.kind == CutKind::halo && cut.from_spatial_shard != coord.spatial_shard &&
        cut.to_spatial_shard != coord.spatial_shard)
      continue;
    const auto elems = static_cast<double>(cut.shape.elems());
    const double bytes = elems * micro * static_cast<double>(size_of(dtype));
    const auto times = static_cast<double>(cut.times);
    switch (cut.kind) {
      case CutKind::sum: seconds += times * sum_s(mesh.tensor(), bytes, link); break;
      case CutKind::gather: seconds += times * gather_s(mesh.tensor(), bytes, link); break;
      case CutKind::rows: seconds += gather_s(mesh.space(), bytes, link); break;
      case CutKind::row_sum: seconds += sum_s(mesh.space(), bytes, link); break;
      case CutKind::statistics: seconds += sum_s(mesh.space(), elems * sizeof(double), link); break;
      case CutKind::sample_sums: seconds += sum_s(mesh.space(), elems * micro * sizeof(double), link); break;
      case CutKind::message:
      case CutKind::halo: seconds += (cut.learns ? 2 : 1) * (link.latency_s + bytes / link.bytes_per_s); break;
    }
  }
  return seconds;
}

bool on_one_host(const Mesh& mesh, const std::vector<int>& hosts) {
  for (int replica = 0; replica < mesh.replicas(); ++replica)
    for (int part = 1; part < mesh.group_size(); ++part)
      if (hosts[static_cast<std::size_t>(mesh.rank_of(replica, part))] !=
          hosts[static_cast<std::size_t>(mesh.rank_of(replica, 0))])
        return false;
  return true;
}

}  // namespace

int busiest_spatial_shard(const Mesh& mesh) { return mesh.space() > 2 ? 1 : 0; }

SplitPrice price_split(const Config& config, const Graph& whole, const std::vector<Part>& parts, const Mesh& mesh,
                       const std::vector<int>& hosts, std::int64_t micro_batch, const SplitCosts& costs) {
  const DType dtype = config.device.dtype;
  const auto whole_costs = by_name(whole, costs.node_s, dtype);
  const auto micro = static_cast<double>(micro_batch), micros = static_cast<double>(config.batch.accumulation);
  const double holders = mesh.replicas() * mesh.space();  // ranks that sum the gradients of a part
  const bool crosses = std::set<int>(hosts.begin(), hosts.end()).size() > 1;
  const Link& inside = on_one_host(mesh, hosts) ? costs.network.inside : costs.network.between;
  const Link& across = crosses ? costs.network.between : costs.network.inside;
  const double link_sharers = crosses ? mesh.group_size() : 1;
  const double states = static_cast<double>(rule_of(config.optimiser).arenas());

  double slowest = 0, slowest_compute = 0, once = 0, update = 0, exposed = 0;
  for (std::size_t stage = 0; stage < parts.size(); ++stage) {
    const Part& part = parts[stage];
    const double compute = micro * compute_s(part.graph, whole_costs, dtype);
    const MeshCoord coord{
        .replica = 0, .stage = static_cast<int>(stage), .shard = 0, .spatial_shard = busiest_spatial_shard(mesh)};
    const double transfer = transfer_s(part.cuts, coord, mesh, micro, dtype, inside);
    slowest = std::max(slowest, compute + transfer);
    slowest_compute = std::max(slowest_compute, compute);
    once += compute + transfer;
    const double bytes =
        static_cast<double>(part.graph.parameters().elems()) * static_cast<double>(size_of(wide_of(dtype)));
    update = std::max(update, bytes * (3 + 2 * states) / costs.memory_bytes_per_s);
    const double exchange =
        2 * (holders - 1) * across.latency_s + 2 * (holders - 1) / holders * bytes * link_sharers / across.bytes_per_s;
    const double hidden = config.exchange.overlap == Overlap::none ? 0 : kBackward * compute;
    exposed = std::max(exposed, exchange - hidden);
  }
  SplitPrice price;
  price.compute_s = slowest_compute * micros + update;
  price.between_s =
      micros * slowest + (once - slowest) / static_cast<double>(config.parallel.time_chunks) - slowest_compute * micros;
  price.exchange_s = holders > 1 ? exposed : 0;
  return price;
}

}  // namespace echelon::inline parallel
