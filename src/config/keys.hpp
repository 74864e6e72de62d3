// SPDX-License-Identifier: Apache-2.0
// The table of all keys. Parsing, checks, the echo, the hash, help texts and environment variables are all derived from
// it. A new key needs a field in schema.hpp and a line in keys/<section>.cpp; for a key of one strategy, both are in
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

// The value of a key. The words of an enum are text here.
using KeyValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                              std::vector<std::string>>;

struct KeyLimits {
  double low = 0, high = 0;             // numbers: inclusive bounds; low > high: none
  std::vector<std::string> words = {};  // text: allowed words; empty: any text
  bool or_empty = false;                // text: "" is allowed besides the words
  bool filled = false;                  // text: must not be empty
  bool plain_name = false;              // text: 1 to 128 letters, digits, . _ -, as in names of folders and tensors
  std::size_t most = 4096;              // lists: largest number of entries
};

template <class Owner>
struct Key {
  std::string section;  // "" at the top of the file; "exchange.server" for a table in a table
  std::string name;
  std::string help;
  KeyLimits limits;
  bool neutral = false;  // not in config_hash: a resumed run may change it
  bool younger = false;  // younger than runs that keep their hash: not in config_hash at its default
  std::function<KeyValue(const Owner&)> get;
  std::function<void(Owner&, const KeyValue&)> set;

  std::string path() const { return section.empty() ? name : section + "." + name; }
};

// All keys, in the order of the effective config. Constant; usable from any thread.
const std::vector<Key<Config>>& config_keys();
const std::vector<Key<LayerConfig>>& layer_keys();
std::vector<std::string> section_names();  // "model", "data", .., "exchange", "exchange.server", ..

// The origin of a value: a file with positions, or the flag or variable that gave it.
struct Origin {
  std::string name;
  bool has_lines = true;
  std::string at(int line, int column) const;  // "lenet.toml:7:10", or the name alone without lines
};

// Converts the node to a value of the type of `like` within `limits`. A whole number is accepted for a real, a single
// value for a list. Throws ConfigError, with the place, the reason and the nearest valid value, for a wrong type, a
// value out of range or not finite, an unknown word, too many entries, control characters, or text that is not UTF-8.
KeyValue read_value(const TomlNode& node, const KeyValue& like, const KeyLimits& limits, std::string_view key,
                    const Origin& origin);
std::string value_toml(const KeyValue& value);  // as written after "="; reads back as the same value
std::string type_text(const KeyValue& value, const KeyLimits& limits);              // "whole number"
std::string limits_text(const KeyValue& value, const KeyLimits& limits);            // "1 to 64", "a | b", ""
std::string environment_name(const std::string& section, const std::string& name);  // ECHELON_BATCH_GLOBAL

std::string joined(const std::vector<std::string>& words, std::string_view between = ", ");

// Reads the whole array [[model.layers]]. Throws ConfigError for unknown types, keys that the type does not take,
// missing keys and duplicate names.
std::vector<LayerConfig> read_layers(const TomlNode& node, const Origin& origin);

// Sets one key and its entry of Config::origins. Throws ConfigError for an unknown key, with the nearest name or the
// section it belongs to, and for an invalid value.
void apply_entry(Config& config, const std::string& section, const TomlEntry& entry, const Origin& origin);

// Applies ECHELON_<SECTION>_<KEY> of the environment first (and ECHELON_FAULT, faults separated by semicolons, as
// fault.inject), then the --set flags ("section.key=value"). An empty value resets the key to its default. Throws
// ConfigError for invalid values and unknown names (also of variables that begin with ECHELON_<SECTION>_). `notes` gets
// a line for every other variable whose name is close to one that is read.
void apply_environment(Config& config, const std::vector<std::pair<std::string, std::string>>& environment,
                       std::vector<std::string>* notes = nullptr);
void apply_sets(Config& config, const std::vector<std::string>& sets);

}  // namespace echelon::inline config
