// SPDX-License-Identifier: Apache-2.0
#include "config/differences.hpp"

#include <fmt/format.h>

#include "config/keys.hpp"
#include "config/parse.hpp"

namespace echelon::inline config {

std::vector<KeyDifference> differing_keys(const Config& left, const Config& right, bool neutral_too) {
  std::vector<KeyDifference> all;
  Config with_layers_of_left = left;  // takes every other key from `right`
  for (const auto& key : config_keys()) {
    const KeyValue here = key.get(left), there = key.get(right);
    key.set(with_layers_of_left, there);
    if (here != there && (neutral_too || !key.neutral))
      all.push_back({key.path(), value_toml(here), value_toml(there)});
  }
  const bool other_layers = neutral_too ? echo_config(with_layers_of_left) != echo_config(right)
                                        : config_hash(with_layers_of_left) != config_hash(right);
  if (other_layers)
    all.push_back({"model.layers", fmt::format("{} layers", left.model.layers.size()),
                   fmt::format("{} layers", right.model.layers.size())});
  return all;
}

}  // namespace echelon::inline config
