// SPDX-License-Identifier: Apache-2.0
#include "config/unsteady.hpp"

#include <fmt/format.h>

#include "config/roles.hpp"
#include "config/traits/rules.hpp"

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

constexpr double kMostMomentumOfDelays = 0.5;  // LeNet on 4 replicas reached 53 % with 0.9

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
  if (exchange.strategy == "strom" && exchange.strom.rounds == StromRounds::asynchronous &&
      config.optimiser.momentum > kMostMomentumOfDelays && has_momentum(config))
    texts.push_back(fmt::format(
        "exchange.strom.rounds = \"asynchronous\" with optimizer.momentum = {}: delayed updates act as additional "
        "momentum, and training may end no better than chance; use a momentum of at most {} or a lower learning rate",
        config.optimiser.momentum, kMostMomentumOfDelays));
  return texts;
}

}  // namespace echelon::inline config
