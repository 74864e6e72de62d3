// SPDX-License-Identifier: Apache-2.0
#include "exchange/entry.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "comm/codec/coded_rows.hpp"
#include "config/traits/algorithms.hpp"
#include "config/traits/codecs.hpp"
#include "exchange/allreduce_request.hpp"
#include "optim/rules.hpp"

namespace echelon::inline exchange {
namespace {

const CodecTraits& codec_of(const ExchangeConfig& config) {
  const CodecTraits* codec = find_traits(kCodecs, config.codec);
  return codec ? *codec : kNoCodec;
}

}  // namespace

const StrategyEntry& strategy_entry(std::string_view name) {
#define X(strategy, ...) \
  if (name == #strategy) return strategy##_entry;
  ECHELON_STRATEGIES(X)
#undef X
  throw ConfigError(unknown_name("exchange.strategy", std::string(name), strategy_names()));
}

std::vector<StrategyCase> strategy_cases() {
  std::vector<StrategyCase> all;
  for (const StrategyTraits& strategy : kStrategies) {
    const StrategyEntry& entry = strategy_entry(strategy.name);
    for (const StrategyForm& form : entry.forms) {
      StrategyCase& one = all.emplace_back(StrategyCase{.name = std::string(strategy.name),
                                                        .strategy = strategy.name,
                                                        .family = entry.family,
                                                        .sets = {fmt::format("exchange.strategy={}", strategy.name)},
                                                        .by_timing = form.by_timing,
                                                        .equals_one = form.equals_one});
      if (!form.what.empty()) one.name += ", " + form.what;
      one.sets.insert(one.sets.end(), form.sets.begin(), form.sets.end());
    }
  }
  return all;
}

std::vector<std::string> strategy_names() { return names_in(kStrategies); }

std::unique_ptr<Strategy> make_strategy(const ExchangeConfig& config, const StrategyContext& context) {
  return strategy_entry(config.strategy).make(config, context);
}

ExchangeArenas exchange_arenas(const Config& config, const ParameterSet& parameters, int replicas) {
  ExchangeArenas arenas = strategy_entry(config.exchange.strategy).arenas(config, parameters, replicas);
  if (config.optimiser.momentum_before_coding) {  // of each replica, instead of an optimiser state
    arenas.device += 1;
    arenas.own += 1;
  }
  if (!is_lossy(config.exchange)) return arenas;
  arenas.own += 1;   // the residual, which rank 0 gathers from all replicas
  arenas.whole = 1;  // residuals of sums, or the servers' weights
  return arenas;
}

std::string exchange_text(const StepExchange& exchange) {
  const ExchangeConfig& config = exchange.exchange();
  if (exchange.ranks() == 1) return "none: one replica";
  if (algorithm_traits(config.algorithm).measured)
    return fmt::format("{}; algorithm, segments and buckets are measured and chosen when the run starts",
                       config.strategy);
  return strategy_entry(config.strategy).step_text(exchange);
}

std::string strategy_title(const ExchangeConfig& config) {
  return config.strategy + strategy_entry(config.strategy).title(config) +
         (is_coded(config) ? ", " + config.codec : "") + (config.code_sums ? " with coded sums" : "");
}

bool is_coded(const ExchangeConfig& config) { return config.codec != kNoCodec.name; }
bool is_lossy(const ExchangeConfig& config) { return codec_of(config).lossy; }

double coded_share(const ExchangeConfig& config, const ParameterSet& parameters) {
  if (!is_coded(config) || parameters.elems() == 0) return 1;
  const ArenaRange all{0, parameters.elems()};
  return coded_size(config.codec, codec_options(config, DType::f32, coded_rows(parameters, all)), all.elems()).most /
         sizeof(float);
}

CodecRoute route_of(const ExchangeConfig& config) {
  const CodecTraits& codec = codec_of(config);
  return config.code_sums && codec.reads.contains("code_sums") ? CodecRoute::direct : codec.route;
}

int state_arenas(const Config& config) { return static_cast<int>(rule_of(config.optimiser).arenas()); }

std::string step_line(const StepExchange& exchange, const std::string& way, std::size_t buckets, double bytes,
                      std::int64_t period) {
  const ExchangeConfig& config = exchange.exchange();
  std::string text = fmt::format("{}, {}{} in {}: {} {} over all ranks", config.strategy, way,
                                 is_coded(config) ? " coded as " + config.codec : "",
                                 counted(static_cast<std::int64_t>(buckets), "bucket"),
                                 std::isfinite(bytes) ? bytes_text(bytes) : "bytes that depend on the values",
                                 period == 1 ? "a step" : fmt::format("every {}", counted(period, "step")));
  if (!is_coded(config)) return text;
  if (!config.error_feedback) text += "; without error feedback";
  if (exchange.config.optimiser.momentum_before_coding) text += "; momentum is applied before coding";
  if (config.codec_warmup_steps > 0)
    text += fmt::format("; uncoded before step {}", count_text(config.codec_warmup_steps));
  return text;
}

}  // namespace echelon::inline exchange
