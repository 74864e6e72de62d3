// SPDX-License-Identifier: Apache-2.0
// The update rules that a config can name: their states, the names of these in checkpoints, and whether steps are
// scaled by a ratio of norms. To add one, see config/traits/rules.hpp.
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
// The rule of a config: find_rule, except that "sgd" with momentum = 0 or momentum_before_coding, which the strategy
// applies, is "plain_sgd", which has no state and cannot be named in configs.
const RuleInfo& rule_of(const OptimiserConfig& config);
// Whether the strategy adds momentum and weight decay to gradients before it codes them, so that the rule must not.
bool strategy_has_momentum(const OptimiserConfig& config);
// Whether one rule can continue with the states of another. Moments have the same meaning in adam, adamw and lamb; the
// state "momentum" does not: that of LARS contains the learning rate, that of RMSProp sums scaled gradients.
bool shares_states(const RuleInfo& a, const RuleInfo& b);

}  // namespace echelon::inline optim
