// SPDX-License-Identifier: Apache-2.0
// Maps the name of an update rule, known at run time, to its type.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "device/update_rules/list.hpp"

namespace echelon::inline device {

// Calls make.operator()<Rule>() for the rule of this name. Throws ConfigError with the nearest name for an unknown one.
template <class Make>
auto with_rule(std::string_view rule, Make&& make) {
#define X(Rule) \
  if (rule == Rule::kName) return make.template operator()<Rule>();
  ECHELON_UPDATE_RULES(X)
#undef X
  const std::vector<std::string> known = {
#define X(Rule) Rule::kName,
      ECHELON_UPDATE_RULES(X)
#undef X
  };
  throw ConfigError(unknown_name("update rule", rule, known));
}

}  // namespace echelon::inline device
