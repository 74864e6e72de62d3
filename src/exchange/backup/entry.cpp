// SPDX-License-Identifier: Apache-2.0
#include "exchange/entry.hpp"
#include "device/device.hpp"

namespace echelon::inline exchange {
namespace {

// The servers keep weights and sums of the whole model and the gradients that arrive (buffers.hpp); for a GPU these are
// on the host, with the optimiser's states. Weights in flight count twice, for a late worker. If workers may be lost,
// the weights of the step before are kept while new ones arrive.
ExchangeArenas backup_arenas(const Config& config, const ParameterSet&, int workers) {
  const double parts = serving_ranks(config.exchange, workers);
  const double served = 2 + (workers - 1) / parts, messages = workers > 1 ? 2 / parts : 0;
  const double kept = config.run.on_lost_worker == OnLostWorker::go_on ? 1 : 0;
  if (means_gpu(config.device.kind)) return {.host = served + state_arenas(config) + messages + kept};
  return {.device = served, .host = messages + kept};
}

}  // namespace

const StrategyEntry backup_entry{.family = "backup",
                                 .make = make_backup,
                                 .arenas = backup_arenas,
                                 .step_text = served_text,
                                 .forms = {{.sets = {"exchange.backup.period=8"}, .by_timing = true},
                                           {.what = "0 replicas",
                                            .sets = {"exchange.backup.replicas=0", "exchange.backup.period=8"},
                                            .equals_one = true}}};

}  // namespace echelon::inline exchange
