#include "exchange/strategy.hpp"

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "comm/collective/algorithms.hpp"
#include "exchange/list.hpp"

namespace echelon::inline exchange {

std::vector<std::string> strategy_names() { return names_in(kStrategies); }

std::unique_ptr<Strategy> make_strategy(const ExchangeConfig& config, const StrategyContext& context) {
#define X(name, ...) \
  if (config.strategy == #name) return make_##name(config, context);
  ECHELON_STRATEGIES(X)
#undef X
  throw ConfigError(unknown_name("exchange.strategy", config.strategy, strategy_names()));
}

void broadcast_weights(Arenas& arenas, Engine& engine, int channel) {
  if (engine.size() == 1 || arenas.elems() == 0) return;
  Device& device = arenas.device();
  const std::size_t bytes = static_cast<std::size_t>(arenas.elems()) * size_of(arenas.dtype());
  Memory staged;
  void* data = arenas.weights_at(0);
  if (!device.on_host()) {
    staged = device.allocate_host(bytes);
    data = staged.data();
    device.to_host(data, arenas.weights_at(0), bytes);
  }
  Job job;
  job.plan = make_broadcast(engine.rank(), engine.size(), 0, arenas.elems());
  job.data = data;
  job.dtype = arenas.dtype();
  job.channel = channel;
  engine.submit(std::move(job)).wait();
  if (!device.on_host()) device.to_device(arenas.weights_at(0), data, bytes);
  arenas.touch();
}

}  // namespace echelon::inline exchange
