#include "parallel/split_price.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "model/build.hpp"
#include "optim/rules.hpp"

namespace echelon {
namespace {

constexpr double kBackward = 2.0 / 3;  // of a pass: what can hide an exchange

// By node's name: its cost in the whole model, and its FLOPs there.
struct WholeCost {
  double seconds = 0, flops = 0;
};
std::map<std::string, WholeCost> by_name(const Graph& whole, const std::vector<double>& seconds, DType dtype) {
  const std::vector<double> flops = node_flops(whole, dtype);
  std::map<std::string, WholeCost> all;
  for (std::size_t i = 0; i < flops.size(); ++i) all[whole.nodes()[i].name] = {seconds[i], flops[i]};
  return all;
}

// Of one sample.
double compute_s(const Graph& part, const std::map<std::string, WholeCost>& whole, DType dtype) {
  const std::vector<double> flops = node_flops(part, dtype);
  double seconds = 0;
  for (std::size_t i = 0; i < flops.size(); ++i)
    if (const auto found = whole.find(part.nodes()[i].of); found != whole.end())
      seconds += found->second.seconds * (found->second.flops > 0 ? flops[i] / found->second.flops : 1);
  return seconds;
}

// One micro-batch, forward and back.
double travel_s(const std::vector<Cut>& cuts, int stage, int ranks, double bytes_per_elem, const Link& link) {
  double seconds = 0;
  for (const Cut& cut : cuts) {
    if (cut.from != stage && cut.to != stage) continue;
    const double bytes = static_cast<double>(cut.shape.elems()) * bytes_per_elem, k = ranks;
    if (cut.kind == CutKind::sum)
      seconds += 2 * std::ceil(std::log2(k)) * link.latency_s + 2 * (k - 1) / k * bytes / link.bytes_per_s;
    else if (cut.kind == CutKind::gather)
      seconds += (k - 1) * link.latency_s + (k - 1) / k * bytes / link.bytes_per_s;
    else
      seconds += (cut.learns ? 2 : 1) * (link.latency_s + bytes / link.bytes_per_s);
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

SplitPrice price_split(const Config& config, const Graph& whole, const std::vector<Part>& parts, const Mesh& mesh,
                       const std::vector<int>& hosts, std::int64_t micro_batch, const SplitCosts& costs) {
  const DType dtype = config.device.dtype;
  const auto whole_costs = by_name(whole, costs.node_s, dtype);
  const auto micro = static_cast<double>(micro_batch), micros = static_cast<double>(config.batch.accumulation);
  const double replicas = mesh.replicas();
  const bool crosses = std::set<int>(hosts.begin(), hosts.end()).size() > 1;
  const Link& inside = on_one_host(mesh, hosts) ? costs.network.inside : costs.network.between;
  const Link& across = crosses ? costs.network.between : costs.network.inside;
  const double sharing = crosses ? mesh.group_size() : 1;
  const double states = static_cast<double>(find_rule(config.optimiser.rule).arenas());

  double dearest = 0, dearest_compute = 0, once = 0, update = 0, exposed = 0;
  for (std::size_t stage = 0; stage < parts.size(); ++stage) {
    const Part& part = parts[stage];
    const double compute = micro * compute_s(part.graph, whole_costs, dtype);
    const double travel = travel_s(part.cuts, static_cast<int>(stage), mesh.group_size() / mesh.pipeline(),
                                   micro * static_cast<double>(size_of(dtype)), inside);
    dearest = std::max(dearest, compute + travel);
    dearest_compute = std::max(dearest_compute, compute);
    once += compute + travel;
    const double bytes =
        static_cast<double>(part.graph.parameters().elems()) * static_cast<double>(size_of(wide_of(dtype)));
    update = std::max(update, bytes * (3 + 2 * states) / costs.memory_bytes_per_s);
    const double exchange =
        2 * (replicas - 1) * across.latency_s + 2 * (replicas - 1) / replicas * bytes * sharing / across.bytes_per_s;
    const double hidden = config.exchange.overlap == Overlap::none ? 0 : kBackward * compute;
    exposed = std::max(exposed, exchange - hidden);
  }
  SplitPrice price;
  price.compute_s = dearest_compute * micros + update;
  price.between_s =
      micros * dearest + (once - dearest) / static_cast<double>(config.parallel.time_chunks) - dearest_compute * micros;
  price.exchange_s = mesh.replicas() > 1 ? exposed : 0;
  return price;
}

}  // namespace echelon
