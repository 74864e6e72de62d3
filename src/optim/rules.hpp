// The update rules that a config can name, with what optim/ must know of each: its states, their names in checkpoints,
// and whether its steps are scaled by a ratio of norms. Adding one: config/traits/rules.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/schema.hpp"
#include "config/traits/rules.hpp"

namespace echelon::inline optim {

using RuleInfo = RuleTraits;

std::vector<std::string> rule_names();
// Throws ConfigError with the nearest name for an unknown rule.
const RuleInfo& find_rule(std::string_view name);
// Of a config: find_rule, but "sgd" with momentum = 0 is "plain_sgd", which has no state and no other name in configs.
const RuleInfo& rule_of(const OptimiserConfig& config);
// Whether one rule goes on with the states of another. Moments mean the same to all rules that have them; what is
// called momentum does not: LARS's holds the learning rate, RMSProp's is of scaled gradients.
bool shares_states(const RuleInfo& a, const RuleInfo& b);

}  // namespace echelon::inline optim
