// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "exchange/entry.hpp"

namespace echelon::inline exchange {
namespace {

// A rank is a worker (buffers.hpp), a server with its part (served.hpp), or both. A codec (codec.hpp) adds messages on
// a worker and, on servers, a copy of the weights that each worker has; a lossy codec adds the residual on all ranks.
// Messages are on the host wherever the servers' weights are.
ExchangeArenas async_arenas(const Config& config, const ParameterSet&, int workers) {
  const ExchangeConfig& exchange = config.exchange;
  const AsynchronousKeys& keys = exchange.asynchronous;
  const bool steps = keys.states == AsyncStates::server, apart = exchange.server.ranks > 0;
  ExchangeArenas arenas{.own = steps ? 0.0 : state_arenas(config)};
  if (workers + exchange.server.ranks == 1) return arenas;
  const bool on_device = keys.memory == ServedMemory::device;
  const bool compensates = keys.delay_compensation > 0, adapts = compensates && keys.compensation_decay > 0;
  const double of_worker = is_coded(exchange) ? 4 : 3;
  double served = 1 + (keys.soft > 1 || steps || on_device ? 1 : 0) + (steps ? state_arenas(config) : 0);
  served += (compensates || is_coded(exchange) ? workers : 0) + (adapts ? 1 : 0);
  const double of_servers = workers + (on_device ? 0 : served);
  const double whole = (adapts ? 1 : 0) + (is_lossy(exchange) ? 1 : 0);
  const double parts = serving_ranks(exchange, workers);
  arenas.device = on_device ? served / parts : 0;
  arenas.host = whole + (apart ? std::max(of_worker, of_servers / parts) : of_worker + of_servers / parts);
  return arenas;
}

}  // namespace

const StrategyEntry asynchronous_entry{.family = "asynchronous",
                                       .make = make_asynchronous,
                                       .arenas = async_arenas,
                                       .step_text = served_text,
                                       .forms = {{.by_timing = true}}};
const StrategyEntry stale_synchronous_entry{
    .family = "asynchronous",
    .make = make_stale_synchronous,
    .arenas = async_arenas,
    .step_text = served_text,
    .title = [](const ExchangeConfig& config) { return fmt::format(" within {}", config.stale_synchronous.bound); },
    .forms = {{.by_timing = true}}};

}  // namespace echelon::inline exchange
