#include "cli/exchange_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "cli/sparse_text.hpp"
#include "comm/codec/coded_bucket.hpp"
#include "comm/codec/coded_rows.hpp"
#include "comm/collective/adasum.hpp"
#include "comm/collective/algorithms.hpp"
#include "comm/collective/neighbours.hpp"
#include "comm/collective/server.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/buckets.hpp"
#include "exchange/gossip/topology.hpp"
#include "exchange/server/form.hpp"
#include "exchange/server/partition.hpp"

namespace echelon::cli {
namespace {

// What is sent together, and over which ranks and servers.
using Traffic = std::vector<PartitionedBucket>;

Traffic traffic_of(const Config& config, const ParameterSet& parameters, const ExchangeRanks& ranks) {
  const ExchangeConfig& exchange = config.exchange;
  const DType dtype = wide_of(config.device.dtype);
  AllreduceRequest request = allreduce_request(exchange, ranks.hosts, dtype);
  if (strategy_traits(exchange.strategy).reads.contains("servers"))
    return partition_over_servers(exchange, request, parameters, dtype);
  Traffic buckets;
  for (const ArenaRange& range :
       make_buckets(parameters, size_of(dtype), exchange.bucket_mb * 1024 * 1024, rows_apart(config, ranks.replicas))) {
    request.elems = range.elems();
    buckets.push_back({range, request});
  }
  return buckets;
}

std::string buckets_text(const Traffic& buckets) {
  return counted(static_cast<std::int64_t>(buckets.size()), "bucket");
}

// "a step"; "every 10 steps" of strategies that exchange by period.
std::string interval_text(const ExchangeConfig& exchange) {
  const auto text = [](const auto& keys) -> std::string {
    if constexpr (requires { keys.period; })
      return keys.period == 1 ? "a step" : fmt::format("every {}", counted(keys.period, "step"));
    else
      return "a step";
  };
#define X(name, ...) \
  if (exchange.strategy == #name) return text(exchange.name);
  ECHELON_STRATEGIES(X)
#undef X
  return "a step";
}

std::string coded_text(const Config& config, const ParameterSet& parameters, const ExchangeRanks& ranks,
                       const Traffic& buckets) {
  const ExchangeConfig& exchange = config.exchange;
  const DType dtype = wide_of(config.device.dtype);
  const CodecRoute sent = codec_info(exchange.codec).route;
  const bool serves = !strategy_traits(exchange.strategy).all_reduces();
  double bytes = 0;
  for (const auto& [bucket, request] : buckets) {
    if (serves) {
      const auto form = ServerForm::make(exchange, parameters, dtype, bucket, server_parts(request), {}, false);
      bytes += coded_server_bytes(*form, request);
      continue;
    }
    const auto codec = make_codec(exchange.codec, {.dtype = dtype,
                                                   .ranks = ranks.workers(),
                                                   .density = exchange.density,
                                                   .tau = exchange.tau,
                                                   .index_coding = exchange.index_coding,
                                                   .rows = coded_rows(parameters, bucket)});
    bytes += coded_bytes(*codec, exchange.algorithm, request);
  }
  const char* route = serves                       ? "gradients pushed, weights pulled,"
                      : sent == CodecRoute::any    ? "all-reduce"
                      : sent == CodecRoute::direct ? "reduce-scatter and all-gather"
                                                   : "all-gather";
  std::string text = fmt::format(
      "{}, {} coded as {} in {}: {} {} over all ranks", exchange.strategy, route, exchange.codec, buckets_text(buckets),
      std::isfinite(bytes) ? bytes_text(bytes) : "bytes that depend on the values", interval_text(exchange));
  if (!exchange.error_feedback) text += "; without error feedback";
  if (exchange.codec_warmup_steps > 0)
    text += fmt::format("; uncoded before step {}", count_text(exchange.codec_warmup_steps));
  return text;
}

std::string gossip_text(const ExchangeConfig& exchange, const Traffic& buckets, int ranks, std::int64_t elem) {
  const GossipGraph graph(exchange.gossip, ranks, 0);
  Price sum;
  for (const auto& [bucket, request] : buckets) {
    const Price price =
        price_neighbour_sum(graph.links(), bucket.elems(), neighbour_message_elems(static_cast<double>(elem)));
    sum.messages += price.messages;
    sum.payload_elems += price.payload_elems;
  }
  return fmt::format(
      "gossip, weights to {} of {} replicas in {}: {} a step over all ranks, {} messages; every {} {} all-reduce",
      graph.links() / ranks, ranks - 1, buckets_text(buckets),
      bytes_text(static_cast<double>(sum.payload_elems * elem)), count_text(sum.messages),
      counted(exchange.gossip.consensus_every, "step"), algorithm_text(exchange, ranks));
}

std::string strom_text(const StromKeys& keys, const Traffic& buckets, std::int64_t replicas) {
  const bool waits = keys.rounds == StromRounds::synchronous;
  return fmt::format(
      "strom, entries of updates {} in {}: bytes that depend on the values, {} messages {} over all ranks{}",
      keys.topology == StromTopology::ring ? "around a ring" : "to all others", buckets_text(buckets),
      count_text(static_cast<std::int64_t>(buckets.size()) * replicas * (replicas - 1)),
      waits ? "a step" : "for an update of each",
      keys.warmup_steps > 0 ? fmt::format("; whole updates before step {}", count_text(keys.warmup_steps)) : "");
}

}  // namespace

std::string exchange_text(const Config& config, const ParameterSet& parameters, const ExchangeRanks& ranks) {
  const ExchangeConfig& exchange = config.exchange;
  if (ranks.hosts.size() == 1) return "none: one replica";
  if (algorithm_traits(exchange.algorithm).measured)
    return fmt::format("{}; algorithm, segments and buckets are measured and chosen when the run starts",
                       exchange.strategy);
  const auto elem = static_cast<std::int64_t>(size_of(wide_of(config.device.dtype)));
  const auto all = static_cast<int>(ranks.hosts.size());
  const Traffic buckets = traffic_of(config, parameters, ranks);
  if (exchange.codec != "none") return coded_text(config, parameters, ranks, buckets);
  if (exchange.strategy == "gossip") return gossip_text(exchange, buckets, all, elem);
  if (exchange.strategy == "strom") return strom_text(exchange.strom, buckets, all);
  const bool serves = !strategy_traits(exchange.strategy).all_reduces();
  const bool adasum = exchange.reduction == Reduction::adasum;
  Price sum;
  for (const auto& [bucket, request] : buckets) {
    const Price price =
        adasum ? price_adasum(request) : price_allreduce(serves ? "server" : exchange.algorithm, request);
    sum.messages += price.messages;
    sum.payload_elems += price.payload_elems;
    sum.steps = std::max(sum.steps, price.steps);
  }
  const bool library = algorithm_traits(exchange.algorithm).library;
  return fmt::format(
      "{}, {} in {}: {} {} over all ranks{}", exchange.strategy,
      adasum   ? "Adasum along a butterfly"
      : serves ? "gradients pushed, weights pulled"
               : algorithm_text(exchange, ranks.workers()) + " all-reduce",
      buckets_text(buckets), bytes_text(static_cast<double>(sum.payload_elems * elem)), interval_text(exchange),
      algorithm_traits(exchange.algorithm).in_memory ? ", no messages: sums in memory that ranks share"
      : library                                      ? " (the library's algorithm may differ)"
                : fmt::format(", {} messages in {} sequential steps", count_text(sum.messages), sum.steps));
}

}  // namespace echelon::cli
