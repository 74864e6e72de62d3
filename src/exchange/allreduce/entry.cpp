// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "comm/collective/adasum.hpp"
#include "device/device.hpp"
#include "exchange/allreduce/gradient_codec.hpp"
#include "exchange/allreduce_request.hpp"
#include "exchange/buckets.hpp"
#include "exchange/entry.hpp"

namespace echelon::inline exchange {
namespace {

std::string coded_sums_text(const StepExchange& exchange, const std::vector<SummedBucket>& buckets,
                            std::int64_t period) {
  const ExchangeConfig& config = exchange.exchange();
  double bytes = 0;
  for (const auto& [bucket, request] : buckets)
    bytes += codecs_of(config, exchange.parameters, exchange.dtype(), bucket, request).bytes(config.algorithm, request);
  const CodecRoute route = route_of(config);
  const char* way = route == CodecRoute::any      ? "all-reduce"
                    : route == CodecRoute::direct ? "reduce-scatter and all-gather"
                                                  : "all-gather";
  return step_line(exchange, way, buckets.size(), bytes, period);
}

}  // namespace

std::vector<SummedBucket> summed_buckets(const StepExchange& exchange) {
  AllreduceRequest request = allreduce_request(exchange.exchange(), exchange.hosts, exchange.dtype());
  std::vector<SummedBucket> buckets;
  for (const ArenaRange& range : make_buckets(exchange.parameters, size_of(exchange.dtype()),
                                              exchange.exchange().bucket_mb * 1024 * 1024, exchange.rows_apart)) {
    request.elems = range.elems();
    buckets.push_back({range, request});
  }
  return buckets;
}

// Counts the residuals of values that a replica sends, in the GPU's memory if there is one, and the residuals of sums
// that are encoded again (gradient_codec.hpp); also the messages of plans without segments (plan_memory.hpp).
ExchangeArenas sums_arenas(const Config& config, const ParameterSet& parameters, int replicas) {
  const ExchangeConfig& exchange = config.exchange;
  const CodecRoute route = route_of(exchange);
  const bool on_device = means_gpu(config.device.kind) && replicas > 1;
  ExchangeArenas arenas;
  if (is_lossy(exchange)) (on_device ? arenas.device : arenas.host) = 1;
  if (is_lossy(exchange) && route == CodecRoute::direct) arenas.host += 1;
  if (replicas == 1) return arenas;
  double messages = is_coded(exchange) || exchange.algorithm == "mpi" ? 1 : 0;
  if (exchange.reduction == Reduction::adasum)
    messages = 1 + std::ceil(std::log2(replicas));
  else if (route == CodecRoute::direct)
    messages = 2;
  else if (route == CodecRoute::gather || exchange.algorithm == "naive")
    messages = replicas;
  arenas.host += messages * coded_share(exchange, parameters);
  return arenas;
}

std::string sums_text(const StepExchange& exchange, std::int64_t period) {
  const ExchangeConfig& config = exchange.exchange();
  const std::vector<SummedBucket> buckets = summed_buckets(exchange);
  if (is_coded(config)) return coded_sums_text(exchange, buckets, period);
  const bool adasum = config.reduction == Reduction::adasum;
  Price sum;
  for (const auto& [bucket, request] : buckets)
    sum += adasum ? price_adasum(request) : price_allreduce(config.algorithm, request);
  const std::string way =
      adasum ? "Adasum along a butterfly" : algorithm_text(config, exchange.workers()) + " all-reduce";
  const AlgorithmTraits algorithm = algorithm_traits(config.algorithm);
  return step_line(exchange, way, buckets.size(), exchange.bytes(sum), period) +
         (algorithm.in_memory ? ", no messages: sums in memory that ranks share"
          : algorithm.library
              ? " (the library's algorithm may differ)"
              : fmt::format(", {} messages in {} sequential steps", count_text(sum.messages), sum.steps));
}

std::string sums_title(const ExchangeConfig& config) { return ", " + config.algorithm; }

const StrategyEntry synchronous_entry{.family = "allreduce",
                                      .make = make_synchronous,
                                      .arenas = sums_arenas,
                                      .step_text = [](const StepExchange& exchange) { return sums_text(exchange, 1); },
                                      .title = sums_title,
                                      .forms = {{.equals_one = true}}};

}  // namespace echelon::inline exchange
