// SPDX-License-Identifier: Apache-2.0
// The description of a strategy before it runs. Each strategy has its entry in its folder (entry.cpp). In this
// room, only entry.cpp looks for a strategy by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collective/algorithms.hpp"
#include "comm/exchange_arenas.hpp"
#include "config/traits/codecs.hpp"
#include "device/parameter.hpp"
#include "exchange/strategy.hpp"

namespace echelon::inline exchange {

// The exchange of a step as `check` knows it: the ranks, and the parameters that they exchange.
struct StepExchange {
  const Config& config;
  const ParameterSet& parameters;
  std::vector<int> hosts;   // by rank, servers on ranks of their own last
  int servers = 0;          // number of ranks that only serve
  bool rows_apart = false;  // sparse tables are no part of the buckets
  const ExchangeConfig& exchange() const { return config.exchange; }
  DType dtype() const { return wide_of(config.device.dtype); }
  int ranks() const { return static_cast<int>(hosts.size()); }
  int workers() const { return ranks() - servers; }
  double bytes(const Price& price) const {
    return static_cast<double>(price.payload_elems) * static_cast<double>(size_of(dtype()));
  }
};

// A form in which tests/tools/kills.py and tests/tools/faults.py run a strategy for a few dozen steps. `verify` trains
// the first form of each strategy and compares all that equal one replica.
struct StrategyForm {
  std::string what = {};               // what distinguishes it: "asynchronous"; "" for the first form of a strategy
  std::vector<std::string> sets = {};  // further settings, as for --set: periods are so short that replicas meet often
  bool by_timing = false;              // the weights depend on the order in which messages arrive
  bool equals_one = false;             // the weights are those of one replica that takes all samples
};

struct StrategyEntry {
  std::string_view family;  // its folder in exchange/
  std::unique_ptr<Strategy> (*make)(const ExchangeConfig& config, const StrategyContext& context);
  // Counts all but the residual of a lossy codec in checkpoints, which exchange_arenas adds.
  CountArenas arenas;
  // Describes the exchange of a step over several ranks: algorithm, buckets, messages and bytes by the price list.
  std::string (*step_text)(const StepExchange& exchange);
  // The text that follows the strategy's name in a title: " every 10, ring".
  std::string (*title)(const ExchangeConfig& config) = [](const ExchangeConfig&) { return std::string(); };
  bool always_codes = false;  // messages are coded even without exchange.codec
  bool to_neighbours =
      false;  // replicas send to some others of their own choice; exchange.algorithm sums the mean only
  std::vector<StrategyForm> forms = {{}};
};

#define X(name, ...)                                                                                   \
  std::unique_ptr<Strategy> make_##name(const ExchangeConfig& config, const StrategyContext& context); \
  extern const StrategyEntry name##_entry;
ECHELON_STRATEGIES(X)
#undef X

// Throws ConfigError with the nearest name for an unknown strategy.
const StrategyEntry& strategy_entry(std::string_view name);

// The forms of all strategies: `echelon info --strategies`.
struct StrategyCase {
  std::string name;  // "strom", "strom, asynchronous"
  std::string_view strategy, family;
  std::vector<std::string> sets;  // with exchange.strategy
  bool by_timing = false, equals_one = false;
};
std::vector<StrategyCase> strategy_cases();

ExchangeArenas exchange_arenas(const Config& config, const ParameterSet& parameters, int replicas);
// One line: "synchronous, ring all-reduce in 3 buckets of 4.00 MiB: 21.3 MiB a step over all ranks, ..". Throws as
// price_allreduce and make_codec do.
std::string exchange_text(const StepExchange& exchange);
// "averaging every 10, ring, fp16"
std::string strategy_title(const ExchangeConfig& config);

// Whether exchange.codec codes, whether it is lossy, and the size of its messages over that of the values.
bool is_coded(const ExchangeConfig& config);
bool is_lossy(const ExchangeConfig& config);
double coded_share(const ExchangeConfig& config, const ParameterSet& parameters);
// The route of messages that an all-reduce sums: that of the codec, or `direct` with exchange.code_sums.
CodecRoute route_of(const ExchangeConfig& config);
// Number of arenas of the optimiser's states.
int state_arenas(const Config& config);
// "<strategy>, <way> in 3 buckets: 21.3 MiB every 10 steps over all ranks", with the options of exchange.codec. `bytes`
// is NaN if it depends on the values.
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

// For strategies with servers (server/entry.cpp): the number of ranks that share the weights. Gradients are pushed at
// every step, whatever the period of meetings.
double serving_ranks(const ExchangeConfig& config, int workers);
std::string served_text(const StepExchange& exchange);

}  // namespace echelon::inline exchange
