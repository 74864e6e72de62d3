// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "exchange/averaging/local_steps.hpp"
#include "exchange/entry.hpp"

namespace echelon::inline exchange {
namespace {

// Averaging keeps the weights of the last averaging, and the outer momentum.
ExchangeArenas averaging_arenas(const Config& config, const ParameterSet& parameters, int replicas) {
  const AveragingKeys& keys = config.exchange.averaging;
  ExchangeArenas arenas = sums_arenas(config, parameters, replicas);
  arenas.device += (keys.outer() || is_coded(config.exchange) ? 1 : 0) + (keys.outer() ? 1 : 0);
  arenas.own = keys.states == AveragedStates::local ? state_arenas(config) : 0;
  return arenas;
}

// Elastic averaging keeps the centre, and the deviation from it.
ExchangeArenas elastic_arenas(const Config& config, const ParameterSet& parameters, int replicas) {
  ExchangeArenas arenas = sums_arenas(config, parameters, replicas);
  arenas.device += 2;
  arenas.own = state_arenas(config) + 1;
  return arenas;
}

std::string title(std::int64_t period, const ExchangeConfig& config) {
  return fmt::format(" every {}{}", period, sums_title(config));
}

}  // namespace

const StrategyEntry averaging_entry{
    .family = "averaging",
    .make = make_averaging,
    .arenas = averaging_arenas,
    .step_text =
        [](const StepExchange& exchange) {
          const AveragingKeys& keys = exchange.exchange().averaging;
          return sums_text(exchange, keys.period) + outer_text(keys);
        },
    .title = [](const ExchangeConfig& config) { return title(config.averaging.period, config); },
    .forms = {{.sets = {"exchange.averaging.period=4"}},
              {.what = "outer Nesterov step",
               .sets = {"exchange.averaging.period=4", "exchange.averaging.outer_step=nesterov",
                        "exchange.averaging.outer_momentum=0.9", "exchange.averaging.outer_rate=0.7"}}}};
const StrategyEntry elastic_entry{
    .family = "averaging",
    .make = make_elastic,
    .arenas = elastic_arenas,
    .step_text = [](const StepExchange& exchange) { return sums_text(exchange, exchange.exchange().elastic.period); },
    .title = [](const ExchangeConfig& config) { return title(config.elastic.period, config); },
    .forms = {{.sets = {"exchange.elastic.period=4"}}}};

}  // namespace echelon::inline exchange
