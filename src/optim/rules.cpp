#include "optim/rules.hpp"

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "device/update_rules/list.hpp"

namespace echelon {
namespace {

const std::vector<RuleInfo>& rules() {
  static const std::vector<RuleInfo> all = {
      {SgdRule::kName, {"momentum"}},
      {AdamRule::kName, {"first_moment", "second_moment"}, TrustRatio::none, true},
      {AdamWRule::kName, {"first_moment", "second_moment"}, TrustRatio::none, true},
      {RmspropRule::kName, {"mean_square", "momentum"}},
      {LarsRule::kName, {"momentum"}, TrustRatio::gradient},
      {LambRule::kName, {"first_moment", "second_moment"}, TrustRatio::update, true},
  };
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

const RuleInfo& rule_of(const OptimiserConfig& config) {
  static const RuleInfo plain = {PlainSgdRule::kName, {}};
  const RuleInfo& named = find_rule(config.rule);
  return named.name == SgdRule::kName && config.momentum == 0 ? plain : named;
}

bool shares_states(const RuleInfo& a, const RuleInfo& b) { return a.name == b.name || (a.unbiases && b.unbiases); }

}  // namespace echelon
