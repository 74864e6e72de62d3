// SPDX-License-Identifier: Apache-2.0
#include "config/keys.hpp"

#include <cctype>

#include "config/keys/section.hpp"

namespace echelon::inline config {

const std::vector<Key<Config>>& config_keys() {
  static const std::vector<Key<Config>> table = [] {
    keys::Table all;
    keys::add_experiment(all);
    keys::add_optimiser(all);
    keys::add_parallel(all);
    keys::add_exchange(all);
    keys::add_run(all);
    return all;
  }();
  return table;
}

const std::vector<Key<LayerConfig>>& layer_keys() {
  static const std::vector<Key<LayerConfig>> table = [] {
    keys::LayerTable all;
    keys::add_layer(all);
    return all;
  }();
  return table;
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Key<Config>& key : config_keys())
    if (!key.section.empty() && (names.empty() || names.back() != key.section)) names.push_back(key.section);
  return names;
}

std::string environment_name(const std::string& section, const std::string& name) {
  std::string out = "ECHELON_" + (section.empty() ? "" : section + "_") + name;
  for (char& c : out) c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace echelon::inline config
