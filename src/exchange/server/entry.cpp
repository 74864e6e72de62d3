// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "comm/collective/server.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/entry.hpp"
#include "exchange/server/form.hpp"
#include "exchange/server/partition.hpp"

namespace echelon::inline exchange {

double serving_ranks(const ExchangeConfig& config, int workers) {
  if (config.server.ranks > 0) return static_cast<double>(config.server.ranks);
  return static_cast<double>(config.servers > 0 ? config.servers : workers);
}

std::string served_text(const StepExchange& exchange) {
  const ExchangeConfig& config = exchange.exchange();
  const std::vector<PartitionedBucket> buckets = partition_over_servers(
      config, allreduce_request(config, exchange.hosts, exchange.dtype()), exchange.parameters, exchange.dtype());
  const std::string way = "gradients pushed, weights pulled";
  if (is_coded(config)) {
    double bytes = 0;
    for (const auto& [bucket, request] : buckets)
      bytes += coded_server_bytes(
          *ServerForm::make(config, exchange.parameters, exchange.dtype(), bucket, server_parts(request), {}, false),
          request);
    return step_line(exchange, way + ",", buckets.size(), bytes, 1);
  }
  Price sum;
  for (const auto& [bucket, request] : buckets) sum += price_allreduce("server", request);
  return step_line(exchange, way, buckets.size(), exchange.bytes(sum), 1) +
         fmt::format(", {} messages in {} sequential steps", count_text(sum.messages), sum.steps);
}

namespace {

// A codec (codec.hpp, buffers.hpp) keeps the residual, master weights, changes and working weights, and the messages of
// a worker; a server also keeps those that come from all workers. Top-k sorts all values of a part.
ExchangeArenas server_arenas(const Config& config, const ParameterSet& parameters, int workers) {
  const ExchangeConfig& exchange = config.exchange;
  if (!is_coded(exchange)) return {};
  const double parts = serving_ranks(exchange, workers);
  const double sorted = exchange.codec == "topk" ? 2 / parts : 0;
  const double messages =
      workers + exchange.server.ranks > 1 ? coded_share(exchange, parameters) * (1 + workers / parts) + sorted : 0;
  return {.host = (is_lossy(exchange) ? 4 : 0) + messages};
}

}  // namespace

const StrategyEntry server_entry{.family = "server",
                                 .make = make_server,
                                 .arenas = server_arenas,
                                 .step_text = served_text,
                                 .forms = {{.equals_one = true}}};

}  // namespace echelon::inline exchange
