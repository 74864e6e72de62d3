// SPDX-License-Identifier: Apache-2.0
#include "planner/workload.hpp"

#include <algorithm>
#include <numeric>

#include "comm/codec/coded_rows.hpp"
#include "exchange/buckets.hpp"
#include "model/build.hpp"

namespace echelon::inline planner {

Workload workload_of(const Config& config, const Graph& graph) {
  Workload work{.model = config.model.zoo.empty() ? config.name : config.model.zoo, .buckets = {}};
  work.elem_bytes = static_cast<double>(size_of(wide_of(config.device.dtype)));
  const std::vector<double> flops = node_flops(graph, config.device.dtype);
  work.flops = std::accumulate(flops.begin(), flops.end(), 0.0);
  // By parameter: the FLOPs of the layers before its own.
  std::vector<double> before(static_cast<std::size_t>(graph.parameters().size()), 0);
  double passed = 0;
  for (std::size_t n = 0; n < graph.nodes().size(); passed += flops[n++])
    for (const int p : graph.nodes()[n].parameters) before[static_cast<std::size_t>(p)] = passed;
  const std::int64_t parts = config.parallel.pipeline * config.parallel.tensor;
  for (const ArenaRange range : make_buckets(graph.parameters(), static_cast<std::size_t>(work.elem_bytes),
                                             config.exchange.bucket_mb * 1024 * 1024)) {
    double first = work.flops;
    for (int p = 0; p < graph.parameters().size(); ++p)
      if (graph.parameters()[p].begin >= range.begin && graph.parameters()[p].end() <= range.end)
        first = std::min(first, before[static_cast<std::size_t>(p)]);
    const double share = work.flops > 0 ? first / work.flops : 0;
    work.buckets.push_back({.elems = std::max<std::int64_t>(1, range.elems() / parts),
                            .ready = 1 - share,
                            .needed = share,
                            .rows = coded_rows(graph.parameters(), range)});
    work.elems += work.buckets.back().elems;
  }
  for (const Parameter& parameter : graph.parameters().all()) work.sparse_tables |= parameter.sparse;
  return work;
}

}  // namespace echelon::inline planner
