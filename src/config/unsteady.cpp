// SPDX-License-Identifier: Apache-2.0
#include "config/unsteady.hpp"

#include <fmt/format.h>

#include "config/choices.hpp"
#include "config/roles.hpp"
#include "config/traits/rules.hpp"
#include "config/traits/strategies.hpp"

namespace echelon::inline config {
namespace {

// Whether the step of the rule grows with the gradient.
bool grows_with_gradient(const Config& config) {
  const RuleTraits* rule = find_traits(kRules, config.optimiser.rule);
  return rule && !rule->unbiases && rule->trust == TrustRatio::none && rule->name != "rmsprop";
}

bool has_momentum(const Config& config) {
  const RuleTraits* rule = find_traits(kRules, config.optimiser.rule);
  return rule && rule->reads.contains("momentum");
}

// Adds what the table of the chosen strategy says.
void add_of_strategy(std::vector<std::string>& texts, const ExchangeConfig& exchange, int workers) {
  const auto add = [&](std::string_view strategy, const auto& keys) {
    if constexpr (requires { keys.unsteady(workers); })
      if (exchange.strategy == strategy)
        if (const auto text = keys.unsteady(workers)) texts.push_back(*text);
  };
#define X(strategy, ...) add(#strategy, exchange.strategy);
  ECHELON_STRATEGIES(X)
#undef X
}

constexpr double kMostMomentumOfDelays = 0.5;  // LeNet on 4 replicas reached 53 % with 0.9

// Whether optimizer.momentum_before_coding could be set, and is not.
bool has_momentum_of_coded_sums(const Config& config) {
  const RuleTraits* rule = find_traits(kRules, config.optimiser.rule);
  return rule && rule->reads.contains("momentum_before_coding") && !config.optimiser.momentum_before_coding &&
         strategy_traits(config.exchange.strategy).sums_gradients();
}

}  // namespace

std::vector<std::string> unsteady(const Config& config, int ranks) {
  std::vector<std::string> texts;
  const int workers = roles_of(config, ranks).workers;
  if (workers == 1) return texts;
  const ExchangeConfig& exchange = config.exchange;
  const double rate = config.optimiser.learning_rate;
  if (exchange.reduction == Reduction::adasum && grows_with_gradient(config))
    texts.push_back(fmt::format(
        "exchange.reduction = \"adasum\" adds the orthogonal parts of the gradients of {} replicas: its steps are up "
        "to {} times as long as those of \"sum\" at the same rate; begin with a rate of {:.3g} to {:.3g}",
        workers, workers, rate / workers, rate));
  if (exchange.codec == "onebit" && !exchange.error_feedback)
    texts.emplace_back(
        "exchange.codec = \"onebit\" with exchange.error_feedback = false: what a message leaves out is lost, and "
        "training may diverge; leave error_feedback out, or use \"int8\"");
  add_of_strategy(texts, exchange, workers);
  if (config.optimiser.momentum <= kMostMomentumOfDelays || !has_momentum(config)) return texts;
  if (exchange.codec == "onebit" && has_momentum_of_coded_sums(config))
    texts.push_back(fmt::format(
        "exchange.codec = \"onebit\" with optimizer.momentum = {} of the coded sums: cnn_32_64 was 3 points less "
        "accurate after one epoch, and 1 point with optimizer.momentum_before_coding = true",
        config.optimiser.momentum));
  for (const Choice* choice : choices_of(config))
    if (choice->is.has(Property::momentum_by_delay))
      texts.push_back(fmt::format(
          "{} with optimizer.momentum = {}: delayed updates act as additional momentum, and training may end no better "
          "than chance; use a momentum of at most {} or a lower learning rate",
          choice->text(), config.optimiser.momentum, kMostMomentumOfDelays));
  return texts;
}

}  // namespace echelon::inline config
