// SPDX-License-Identifier: Apache-2.0
#include "cli/sparse_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "comm/collective/algorithms.hpp"
#include "exchange/allreduce/row_price.hpp"
#include "exchange/allreduce_request.hpp"
#include "optim/optimiser.hpp"

namespace echelon::cli {
namespace {

// "; 1.17 KiB on the wire, whole 2.00 KiB (above 80 % of the rows)" for a step that touches `rows` rows of the table.
std::string wire_text(const Config& config, const Parameter& table, const std::vector<int>& hosts, std::int64_t rows) {
  if (hosts.size() == 1) return {};
  if (!rows_apart(config, static_cast<int>(hosts.size()))) return "; whole tables are sent";
  if (algorithm_traits(config.exchange.algorithm).measured) return "; touched rows are sent";
  const DType dtype = wide_of(config.device.dtype);
  const RowRequest request{config.exchange.algorithm, allreduce_request(config.exchange, hosts, dtype), dtype,
                           config.optimiser.lazy, config.exchange.sparse_density};
  const auto most = static_cast<double>(rows) * static_cast<double>(hosts.size());
  return fmt::format("; {} on the wire, whole {} (above {:.0f} % of the rows)",
                     bytes_text(rows_bytes(request, table, most)), bytes_text(whole_bytes(request, table)),
                     100 * densest_rows(request, table));
}

}  // namespace

bool rows_apart(const Config& config, int replicas) {
  const bool tracked = replicas == 1 || strategy_traits(config.exchange.strategy).tracks_rows;
  const bool summed = config.exchange.reduction == Reduction::sum && !sums_on_devices(config.exchange.algorithm);
  return tracked && config.exchange.codec == "none" && config.device.kind != "paced" && (replicas == 1 || summed);
}

std::vector<std::string> sparse_lines(const Config& config, const Graph& graph, const std::vector<int>& hosts,
                                      std::int64_t samples) {
  std::vector<std::string> lines;
  for (const Node& node : graph.nodes())
    for (const int index : node.parameters) {
      const Parameter& table = graph.parameters()[index];
      if (!table.sparse) continue;
      const std::int64_t tokens = graph.values()[static_cast<std::size_t>(node.inputs[0])].shape.elems();
      const std::int64_t rows = std::min(table.shape[0], samples * tokens);
      const bool alone = rows_suffice(config.optimiser, table) && rows_apart(config, static_cast<int>(hosts.size()));
      const char* update = !alone                  ? "the whole table is updated"
                           : config.optimiser.lazy ? "only these are updated (lazy)"
                                                   : "only these are updated";
      lines.push_back(fmt::format("{}: at most {} of {} rows touched by a replica and step, {}{}", table.name,
                                  count_text(rows), count_text(table.shape[0]), update,
                                  wire_text(config, table, hosts, rows)));
    }
  return lines;
}

}  // namespace echelon::cli
