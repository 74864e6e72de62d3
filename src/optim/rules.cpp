// SPDX-License-Identifier: Apache-2.0
#include "optim/rules.hpp"

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon::inline optim {

std::vector<std::string> rule_names() { return names_in(kRules); }

const RuleInfo& find_rule(std::string_view name) {
  if (const RuleTraits* known = find_traits(kRules, name)) return *known;
  throw ConfigError(unknown_name("optimizer.rule", name, rule_names()));
}

const RuleInfo& rule_of(const OptimiserConfig& config) {
  static constexpr RuleInfo kPlain = {.name = "plain_sgd"};
  const RuleInfo& named = find_rule(config.rule);
  return named.name == "sgd" && (config.momentum == 0 || config.momentum_before_coding) ? kPlain : named;
}

bool strategy_has_momentum(const OptimiserConfig& config) {
  return config.momentum_before_coding && find_rule(config.rule).reads.contains("momentum_before_coding");
}

bool shares_states(const RuleInfo& a, const RuleInfo& b) { return a.name == b.name || (a.unbiases && b.unbiases); }

}  // namespace echelon::inline optim
