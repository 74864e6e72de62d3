// The update rules that a config can name, with what optim/ must know of each: how many states, and their names in
// checkpoints. Adding one: its header in device/update_rules/ and a row in rules.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace echelon {

struct RuleInfo {
  std::string_view name;
  std::vector<std::string_view> states;  // "momentum"; each an arena of the weights' size
};

std::vector<std::string> rule_names();
// Throws ConfigError with the nearest name for an unknown rule.
const RuleInfo& find_rule(std::string_view name);

}  // namespace echelon
