// The table of all keys: the one source of what is parsed, checked, echoed, hashed, explained and read from the
// environment. Adding a key is a field in schema.hpp and a line in keys/<section>.cpp; a key of one strategy is both in
// strategies/<strategy>.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/schema.hpp"
#include "config/toml_tree.hpp"

namespace echelon::inline config {

// What a key can hold. Words of an enum travel as text.
using KeyValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                              std::vector<std::string>>;

struct KeyLimits {
  double low = 0, high = 0;             // numbers, both included; low > high: none
  std::vector<std::string> words = {};  // text: what is allowed; empty: anything
  bool or_empty = false;                // text: "" beside the words
  bool filled = false;                  // text: not empty
  bool plain_name = false;              // text: letters, digits and . _ - only, for names of folders and tensors
  std::size_t most = 4096;              // lists: entries
};

template <class Owner>
struct Key {
  std::string section;  // "" at the top of the file; "exchange.server" of a table in a table
  std::string name;
  std::string help;
  KeyLimits limits;
  bool neutral = false;  // not part of what makes two runs the same
  std::function<KeyValue(const Owner&)> get;
  std::function<void(Owner&, const KeyValue&)> set;

  std::string path() const { return section.empty() ? name : section + "." + name; }
};

const std::vector<Key<Config>>& config_keys();
const std::vector<Key<LayerConfig>>& layer_keys();
std::vector<std::string> section_names();  // "model", "data", .., "exchange", "exchange.server", ..

// Says where a value stands: positions in a file, or the flag or variable that gave it.
struct Origin {
  std::string name;
  bool has_lines = true;
  std::string at(int line, int column) const;
};

// The node as the kind of value that `like` is, inside `limits`. ConfigError with the place, the reason and the nearest
// valid value.
KeyValue read_value(const TomlNode& node, const KeyValue& like, const KeyLimits& limits, std::string_view key,
                    const Origin& origin);
std::string value_toml(const KeyValue& value);                                      // as it stands behind "="
std::string type_text(const KeyValue& value, const KeyLimits& limits);              // "whole number"
std::string limits_text(const KeyValue& value, const KeyLimits& limits);            // "1 to 64", "a | b", ""
std::string environment_name(const std::string& section, const std::string& name);  // ECHELON_BATCH_GLOBAL

std::string joined(const std::vector<std::string>& words, std::string_view between = ", ");

// [[model.layers]], whole.
std::vector<LayerConfig> read_layers(const TomlNode& node, const Origin& origin);

// Sets one key; a known section and key, else ConfigError.
void apply_entry(Config& config, const std::string& section, const TomlEntry& entry, const Origin& origin);

// The environment's ECHELON_<SECTION>_<KEY> first, then the --set flags. An empty value puts the key back to its
// default.
void apply_environment(Config& config, const std::vector<std::pair<std::string, std::string>>& environment);
void apply_sets(Config& config, const std::vector<std::string>& sets);

}  // namespace echelon::inline config
