// What a strategy says of itself before it runs. The entry of a strategy is in its folder (entry.cpp), and is asked for
// by name: exchange.strategy is compared with a name in entry.cpp of this room alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collective/algorithms.hpp"
#include "comm/exchange_arenas.hpp"
#include "device/parameter.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

// The exchange of a step as `check` knows it: over which ranks, of which parameters.
struct StepExchange {
  const Config& config;
  const ParameterSet& parameters;
  std::vector<int> hosts;   // by rank, servers on ranks of their own last
  int servers = 0;          // of them
  bool rows_apart = false;  // sparse tables are no part of the buckets
  const ExchangeConfig& exchange() const { return config.exchange; }
  DType dtype() const { return wide_of(config.device.dtype); }
  int ranks() const { return static_cast<int>(hosts.size()); }
  int workers() const { return ranks() - servers; }
};

struct StrategyEntry {
  std::unique_ptr<Strategy> (*make)(const ExchangeConfig& config, const StrategyContext& context);
  // As CountArenas, but for the residual of a lossy codec in checkpoints.
  CountArenas arenas;
  // The exchange of a step, of several ranks: algorithm, buckets, messages and bytes by the price list.
  std::string (*step_text)(const StepExchange& exchange);
  // Behind the name of the strategy in a title: " every 10, ring".
  std::string (*title)(const ExchangeConfig& config) = [](const ExchangeConfig&) { return std::string(); };
  bool always_codes = false;  // also without exchange.codec
};

#define X(name, ...)                                                                                   \
  std::unique_ptr<Strategy> make_##name(const ExchangeConfig& config, const StrategyContext& context); \
  extern const StrategyEntry name##_entry;
ECHELON_STRATEGIES(X)
#undef X

// Throws ConfigError with the nearest name for an unknown strategy.
const StrategyEntry& strategy_entry(std::string_view name);

ExchangeArenas exchange_arenas(const Config& config, const ParameterSet& parameters, int replicas);
// One line: "synchronous, ring all-reduce in 3 buckets of 4.00 MiB: 21.3 MiB a step over all ranks, ..". Throws as
// price_allreduce and make_codec do.
std::string exchange_text(const StepExchange& exchange);
// "averaging every 10, ring, fp16"
std::string strategy_title(const ExchangeConfig& config);

// For entries. Whether exchange.codec codes, whether it loses anything, and the bytes of messages over those of values.
bool is_coded(const ExchangeConfig& config);
bool is_lossy(const ExchangeConfig& config);
double coded_share(const ExchangeConfig& config, const ParameterSet& parameters);
// Arenas of the optimiser's states.
int state_arenas(const Config& config);
// "<strategy>, <way> in 3 buckets: 21.3 MiB every 10 steps over all ranks", with what exchange.codec makes of it. The
// bytes are NaN where they depend on the values.
std::string step_line(const StepExchange& exchange, const std::string& way, std::size_t buckets, double bytes,
                      std::int64_t period);

// For strategies that sum by exchange.algorithm (allreduce/entry.cpp): the buckets with the all-reduce of each; an
// exchange every `period` steps.
struct SummedBucket {
  ArenaRange range;
  AllreduceRequest request;
};
std::vector<SummedBucket> summed_buckets(const StepExchange& exchange);
ExchangeArenas sums_arenas(const Config& config, const ParameterSet& parameters, int replicas);
std::string sums_text(const StepExchange& exchange, std::int64_t period);
std::string sums_title(const ExchangeConfig& config);

// For those with servers (server/entry.cpp): ranks that the weights are divided over.
double serving_ranks(const ExchangeConfig& config, int workers);
std::string served_text(const StepExchange& exchange, std::int64_t period);

}  // namespace echelon::inline exchange
