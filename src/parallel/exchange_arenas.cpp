#include "parallel/exchange_arenas.hpp"

#include <algorithm>
#include <cmath>

#include "comm/codec/coded_rows.hpp"
#include "config/traits/codecs.hpp"
#include "config/traits/strategies.hpp"
#include "device/device.hpp"
#include "optim/optimiser.hpp"

namespace echelon::inline parallel {
namespace {

const CodecTraits& codec_of(const ExchangeConfig& exchange) {
  const CodecTraits* codec = find_traits(kCodecs, exchange.codec);
  return codec ? *codec : kNoCodec;
}
bool is_coded(const ExchangeConfig& exchange) { return exchange.codec != kNoCodec.name; }
bool is_lossy(const ExchangeConfig& exchange) { return codec_of(exchange).lossy; }

// The size of messages of a whole arena.
double coded(const ExchangeConfig& exchange, const ParameterSet& parameters) {
  if (!is_coded(exchange)) return 1;
  if (codec_of(exchange).by_rows && parameters.elems() > 0)
    return static_cast<double>(onebit_bytes(parameters, {0, parameters.elems()})) /
           static_cast<double>(parameters.elems() * static_cast<std::int64_t>(sizeof(float)));
  const double part = codec_of(exchange).coded;
  return part > 0 ? part : 2 * exchange.density;
}

double arenas_of_strategy(const ExchangeConfig& exchange) {
#define X(name, ...) \
  if (exchange.strategy == #name) return exchange.name.arenas(is_coded(exchange));
  ECHELON_STRATEGIES(X)
#undef X
  return 0;
}

// Rank 0 gathers this data from all replicas.
double own_arenas(const ExchangeConfig& exchange, int states) {
  double arenas = is_lossy(exchange) ? 1 : 0;  // the residual
  if (strategy_traits(exchange.strategy).tables.contains("asynchronous"))
    arenas += exchange.asynchronous.own_arenas(states);
#define X(name, ...) \
  if (exchange.strategy == #name) return arenas + exchange.name.own_arenas(states);
  ECHELON_STRATEGIES(X)
#undef X
  return arenas;
}

// The number of ranks that share the weights in a strategy with servers.
double server_parts(const ExchangeConfig& exchange, int workers) {
  if (exchange.server.ranks > 0) return static_cast<double>(exchange.server.ranks);
  return static_cast<double>(exchange.servers > 0 ? exchange.servers : workers);
}

// A rank of an asynchronous parameter server: a worker (exchange/asynchronous/memory.hpp), or a server with its part
// (served.hpp), with `states` optimiser states. A codec (codec.hpp) adds messages on a worker; a lossy codec adds
// residuals on all ranks, and on servers a copy of what each worker has. Messages are on the host wherever the servers'
// weights are.
ExchangeArenas of_async_servers(const ExchangeConfig& exchange, int workers, int states) {
  const AsynchronousKeys& keys = exchange.asynchronous;
  const bool on_device = keys.memory == ServedMemory::device;
  const bool compensates = keys.delay_compensation > 0, adapts = compensates && keys.compensation_decay > 0;
  const bool steps = keys.states == AsyncStates::server;
  const double of_worker = is_coded(exchange) ? 4 : 3;
  double served = 1 + (keys.soft > 1 || steps || on_device ? 1 : 0) + (steps ? states : 0);
  served += (compensates || is_coded(exchange) ? workers : 0) + (adapts ? 1 : 0);
  const double of_servers = workers + (on_device ? 0 : served);
  const double whole = (adapts ? 1 : 0) + (is_lossy(exchange) ? 1 : 0);
  const double parts = server_parts(exchange, workers);
  const bool apart = exchange.server.ranks > 0;
  return {.device = on_device ? served / parts : 0,
          .host = whole + (apart ? std::max(of_worker, of_servers / parts) : of_worker + of_servers / parts)};
}

// A synchronous server with a codec (exchange/server/codec.hpp and memory.hpp): residual, master weights, changes and
// working weights; the messages of a worker and, on a server, those that come from all workers. Top-k sorts all values
// of a part.
double of_coded_servers(const ExchangeConfig& exchange, int workers, double coded) {
  const double parts = server_parts(exchange, workers);
  const double sorted = exchange.codec == "topk" ? 2 / parts : 0;
  const double messages = workers + exchange.server.ranks > 1 ? coded * (1 + workers / parts) + sorted : 0;
  return (is_lossy(exchange) ? 4 : 0) + messages;
}

// Servers with backup workers (exchange/backup/memory.hpp): weights and sums of the whole model and gradients that
// arrive, which for a GPU are on the host with the optimiser's states; and weights on their way, twice if a worker is
// late.
ExchangeArenas of_backup_servers(const Config& config, int workers, int states) {
  const double parts = server_parts(config.exchange, workers);
  const double served = 2 + (workers - 1) / parts, messages = workers > 1 ? 2 / parts : 0;
  if (means_gpu(config.device.kind)) return {.host = served + states + messages};
  return {.device = served, .host = messages};
}

// Sums by an all-reduce: the residuals of the values that a replica sends, in the GPU's memory if there is one, and of
// sums that are encoded again (exchange/allreduce/gradient_codec.hpp); and the messages of plans
// (comm/collective/plan_memory.hpp) that are not cut into segments.
ExchangeArenas of_sums(const Config& config, int replicas, double coded) {
  const ExchangeConfig& exchange = config.exchange;
  const CodecRoute route = codec_of(exchange).route;
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
  arenas.host += messages * coded;
  return arenas;
}

}  // namespace

ExchangeArenas exchange_arenas(const Config& config, const ParameterSet& parameters, int replicas) {
  const ExchangeConfig& exchange = config.exchange;
  const StrategyTraits traits = strategy_traits(exchange.strategy);
  const auto states = static_cast<int>(rule_of(config.optimiser).arenas());
  ExchangeArenas arenas;
  if (traits.reads_table("asynchronous")) {
    if (replicas + exchange.server.ranks > 1) arenas = of_async_servers(exchange, replicas, states);
  } else if (exchange.strategy == "server") {
    if (is_coded(exchange)) arenas.host = of_coded_servers(exchange, replicas, coded(exchange, parameters));
  } else if (exchange.strategy == "backup") {
    arenas = of_backup_servers(config, replicas, states);
  } else if (exchange.strategy == "gossip") {
    arenas.host = exchange.gossip.host_arenas(replicas);
  } else if (traits.all_reduces()) {
    arenas = of_sums(config, replicas, coded(exchange, parameters));
  } else if (exchange.strategy == "strom") {
    arenas.host = exchange.strom.host_arenas(replicas);
  }
  if (traits.skips_steps && config.run.on_lost_worker == OnLostWorker::go_on)
    arenas.host += 1;  // the weights of the previous step, while new ones arrive
  arenas.device += arenas_of_strategy(exchange);
  arenas.own = own_arenas(exchange, states);
  arenas.whole = is_lossy(exchange) ? 1 : 0;  // residuals of sums, or the servers' weights
  return arenas;
}

}  // namespace echelon::inline parallel
