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

std::string served_text(const StepExchange& exchange, std::int64_t period) {
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
    return step_line(exchange, way + ",", buckets.size(), bytes, period);
  }
  Price sum;
  for (const auto& [bucket, request] : buckets) {
    const Price price = price_allreduce("server", request);
    sum.messages += price.messages;
    sum.payload_elems += price.payload_elems;
    sum.steps = std::max(sum.steps, price.steps);
  }
  const double bytes = static_cast<double>(sum.payload_elems) * static_cast<double>(size_of(exchange.dtype()));
  return step_line(exchange, way, buckets.size(), bytes, period) +
         fmt::format(", {} messages in {} sequential steps", count_text(sum.messages), sum.steps);
}

namespace {

// With a codec (codec.hpp, memory.hpp) residual, master weights, changes and working weights; the messages of a worker,
// and on a server those that come from all. Top-k sorts all values of a part.
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

const StrategyEntry server_entry{.make = make_server,
                                 .arenas = server_arenas,
                                 .step_text = [](const StepExchange& exchange) { return served_text(exchange, 1); }};

}  // namespace echelon::inline exchange
