#include "cli/sparse_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "exchange/row_price.hpp"
#include "optim/optimiser.hpp"

namespace echelon::cli {
namespace {

RowRequest row_request(const Config& config, int replicas) {
  RowRequest request;
  request.algorithm = config.exchange.algorithm;
  request.allreduce.ranks = replicas;
  request.dtype = wide_of(config.device.dtype);
  request.lazy = config.optimiser.lazy;
  request.sparse_density = config.exchange.sparse_density;
  return request;
}

}  // namespace

std::vector<std::string> sparse_lines(const Config& config, const Graph& graph, int replicas, std::int64_t samples) {
  const RowRequest request = row_request(config, replicas);
  std::vector<std::string> lines;
  for (const Node& node : graph.nodes())
    for (const int index : node.parameters) {
      const Parameter& table = graph.parameters()[index];
      if (!table.sparse) continue;
      const std::int64_t tokens = graph.values()[static_cast<std::size_t>(node.inputs[0])].shape.elems();
      const std::int64_t rows = std::min(table.shape[0], samples * tokens);
      std::string line = fmt::format("{}: at most {} of {} rows touched by a replica and step, {}", table.name,
                                     count_text(rows), count_text(table.shape[0]),
                                     !rows_suffice(config.optimiser, table) ? "the whole table updated"
                                     : config.optimiser.lazy                ? "these alone updated (lazy)"
                                                                            : "these alone updated");
      if (replicas > 1) {
        const double whole = whole_bytes(request, table);
        const double most = rows_bytes(request, table, static_cast<double>(rows * replicas));
        line += fmt::format("; {} on the wire, whole {} (above {:.0f} % of the rows)", bytes_text(most),
                            bytes_text(whole), 100 * densest_rows(request, table));
      }
      lines.push_back(std::move(line));
    }
  return lines;
}

}  // namespace echelon::cli
