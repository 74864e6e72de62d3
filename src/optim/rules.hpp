// The update rules that a config can name, with what optim/ must know of each: its states, their names in checkpoints,
// and whether its steps are scaled by a ratio of norms. Adding one: its header in device/update_rules/ and a row in
// rules.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.hpp"

namespace echelon {

// The norm that a layer's trust ratio divides by.
enum class TrustRatio : std::uint8_t {
  none,
  gradient,  // LARS: measured before the rule's pass
  update,    // LAMB: of the direction that the rule's pass leaves in its last state; `descend` then takes the step
};

struct RuleInfo {
  std::string_view name;
  std::vector<std::string_view> states;  // "momentum"; each an arena of the weights' size
  TrustRatio trust = TrustRatio::none;
  bool unbiases = false;  // the states are moments that begin at zero, which RuleScalars::unbias1 and 2 make up for

  // Arenas beside weights and gradients: the states, and LAMB's direction, which no checkpoint holds.
  std::size_t arenas() const { return states.size() + (trust == TrustRatio::update ? 1 : 0); }
};

std::vector<std::string> rule_names();
// Throws ConfigError with the nearest name for an unknown rule.
const RuleInfo& find_rule(std::string_view name);
// Of a config: find_rule, but "sgd" with momentum = 0 is "plain_sgd", which has no state and no other name in configs.
const RuleInfo& rule_of(const OptimiserConfig& config);
// Whether one rule goes on with the states of another. Moments mean the same to all rules that have them; what is
// called momentum does not: LARS's holds the learning rate, RMSProp's is of scaled gradients.
bool shares_states(const RuleInfo& a, const RuleInfo& b);

}  // namespace echelon
