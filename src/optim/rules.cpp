#include "optim/rules.hpp"

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "device/update_rules/list.hpp"

namespace echelon {
namespace {

const std::vector<RuleInfo>& rules() {
  static const std::vector<RuleInfo> all = {{SgdRule::kName, {"momentum"}}};
  static_assert(SgdRule::kStates == 1);
  return all;
}

}  // namespace

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const RuleInfo& rule : rules()) names.emplace_back(rule.name);
  return names;
}

const RuleInfo& find_rule(std::string_view name) {
  for (const RuleInfo& rule : rules())
    if (rule.name == name) return rule;
  throw ConfigError(unknown_name("optimizer.rule", name, rule_names()));
}

}  // namespace echelon
