// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.hpp"
#include "exchange/entry.hpp"

namespace echelon::inline exchange {
namespace {

// The host keeps the weights before the step, the residual, entries while tau adapts, and the slots of messages
// (protocol.hpp), which hold whole updates or a few entries.
ExchangeArenas strom_arenas(const Config& config, const ParameterSet&, int replicas) {
  const StromKeys& keys = config.exchange.strom;
  const double slots = replicas == 1 ? 1 : strom_slots(keys.rounds == StromRounds::asynchronous) * replicas;
  return {.host = 2 + (keys.tau > 0 ? 0 : 1) + slots * (keys.warmup_steps > 0 ? 1 : keys.density),
          .own = state_arenas(config) + 1.0};
}

std::string strom_text(const StepExchange& exchange) {
  const StromKeys& keys = exchange.exchange().strom;
  const auto buckets = static_cast<std::int64_t>(summed_buckets(exchange).size());
  const std::int64_t replicas = exchange.ranks();
  return fmt::format(
      "strom, entries of updates {} in {}: bytes that depend on the values, {} messages {} over all ranks{}",
      keys.topology == StromTopology::ring ? "around a ring" : "to all others", counted(buckets, "bucket"),
      count_text(buckets * replicas * (replicas - 1)),
      keys.rounds == StromRounds::synchronous ? "a step" : "for an update of each",
      keys.warmup_steps > 0 ? fmt::format("; whole updates before step {}", count_text(keys.warmup_steps)) : "");
}

}  // namespace

const StrategyEntry strom_entry{
    .family = "strom",
    .make = make_strom,
    .arenas = strom_arenas,
    .step_text = strom_text,
    .always_codes = true,
    .forms = {{}, {.what = "asynchronous", .sets = {"exchange.strom.rounds=asynchronous"}, .by_timing = true}}};

}  // namespace echelon::inline exchange
