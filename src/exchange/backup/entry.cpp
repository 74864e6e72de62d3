#include "exchange/entry.hpp"
#include "device/device.hpp"

namespace echelon::inline exchange {
namespace {

// Weights and sums of the whole model and gradients that arrive (memory.hpp), on a GPU's host with the optimiser's
// states; weights on their way, twice where a worker is late; and where workers may be lost the weights of the step
// before, while new ones arrive.
ExchangeArenas backup_arenas(const Config& config, const ParameterSet&, int workers) {
  const double parts = serving_ranks(config.exchange, workers);
  const double served = 2 + (workers - 1) / parts, messages = workers > 1 ? 2 / parts : 0;
  const double kept = config.run.on_lost_worker == OnLostWorker::go_on ? 1 : 0;
  if (means_gpu(config.device.kind)) return {.host = served + state_arenas(config) + messages + kept};
  return {.device = served, .host = messages + kept};
}

}  // namespace

const StrategyEntry backup_entry{
    .make = make_backup, .arenas = backup_arenas, .step_text = [](const StepExchange& exchange) {
      return served_text(exchange, 1);  // backup.period is that of meetings
    }};

}  // namespace echelon::inline exchange
