// SPDX-License-Identifier: Apache-2.0
// Faults in schedules of the learning rate.
#include "tests/support/bad_configs.hpp"

namespace echelon::test {
namespace {

// Returns good_config() with `lines` instead of the last line of [optimizer], its 19th.
std::string beside_rate(const std::string& lines) {
  const std::string& text = good_config();
  return text.substr(0, text.find("momentum")) + lines + "\n";
}

}  // namespace

const std::vector<BadConfig>& bad_recipe_configs() {
  static const std::vector<BadConfig> all = {
      {"factors without points", beside_rate("schedule = \"piecewise_linear\""), {"@19:1", "points = [0,"}},
      {"points that do not begin with 0",
       beside_rate("schedule = \"piecewise_constant\"\npoints = [1]\nfactors = [1]"),
       {"@20:1", "from 0 on"}},
      {"fewer factors than points",
       beside_rate("schedule = \"piecewise_linear\"\npoints = [0, 1]\nfactors = [1]"),
       {"@21:1", "1 number", "has 2"}},
      {"points out of order",
       beside_rate("schedule = \"piecewise_linear\"\npoints = [0, 2, 2]\nfactors = [1, 2, 3]"),
       {"@20:1", "must increase"}},
      {"warm-up of a cycle",
       beside_rate("schedule = \"one_cycle\"\nwarmup_epochs = 1"),
       {"@20:1", "rise of their own"}},
  };
  return all;
}

}  // namespace echelon::test
