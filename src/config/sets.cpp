// SPDX-License-Identifier: Apache-2.0
// Values from outside the file: --set flags and environment variables.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "config/faults.hpp"
#include "config/keys.hpp"
#include "config/unfit.hpp"

namespace echelon::inline config {
namespace {

bool is_text_key(const std::string& path) {
  for (const auto& key : config_keys())
    if (key.path() == path) return std::holds_alternative<std::string>(key.get(Config()));
  return false;
}

// Parses `text` as a TOML value. A bare word is text, and so is an unquoted value if the key wants text.
TomlNode value_of(const std::string& text, bool wants_text) {
  TomlNode node;
  if (read_toml_value(text, node) && (!wants_text || node.kind == TomlKind::text)) return node;
  node = {};
  node.kind = TomlKind::text;
  node.text = text;
  return node;
}

void apply_one(Config& config, const std::string& section, const std::string& name, const std::string& value,
               const Origin& origin) {
  const std::string path = section.empty() ? name : section + "." + name;
  if (value.empty() && unset_key(config, path)) return;
  apply_entry(config, section, {name, 1, 1, value_of(value, is_text_key(path))}, origin);
}

}  // namespace

void apply_sets(Config& config, const std::vector<std::string>& sets) {
  const auto sections = section_names();
  for (const std::string& set : sets) {
    const Origin origin{"--set " + set, false};
    const std::size_t equals = set.find('=');
    if (equals == std::string::npos || equals == 0)
      throw ConfigError(fmt::format("{}: write --set section.key=value, e.g. --set batch.global=128", origin.name));
    std::string path = set.substr(0, equals);
    std::erase(path, ' ');
    const std::size_t dot = path.rfind('.');
    const std::string section = dot == std::string::npos ? "" : path.substr(0, dot);
    if (!section.empty() && std::find(sections.begin(), sections.end(), section) == sections.end())
      throw ConfigError(fmt::format("{}: {}", origin.name, unknown_name("section", section, sections)));
    apply_one(config, section, dot == std::string::npos ? path : path.substr(dot + 1), set.substr(equals + 1), origin);
  }
}

namespace {

// Variables that the program reads in addition to those of keys.
constexpr std::array kOwnVariables = {"ECHELON_LOG",          "ECHELON_MAX_ISA",   "ECHELON_FAULT",
                                      "ECHELON_ATTEMPT_FILE", "ECHELON_RESTARTED", "ECHELON_JOB_END_TIME",
                                      "ECHELON_MPI",          "ECHELON_RESTARTS"};

std::string without_start(const std::string& variable) { return variable.substr(std::string_view("ECHELON_").size()); }

// Notes a variable that is not read but resembles one that is. Other variables belong to other programs.
void note_unknown(const std::string& name, const std::vector<std::string>& keys, std::vector<std::string>* notes) {
  if (notes == nullptr || !name.starts_with("ECHELON_")) return;
  std::vector<std::string> known;
  for (const std::string& key : keys) known.push_back(without_start(key));
  for (const char* own : kOwnVariables) known.push_back(without_start(own));
  const std::string near = nearest_name(without_start(name), known);
  constexpr int kShare = 3;  // at most one of this many letters of a name may differ
  if (near.empty() || edit_distance(without_start(name), near) * kShare > static_cast<int>(near.size())) return;
  if (near == without_start(name)) return;
  notes->push_back(fmt::format("environment variable {} is not read (did you mean ECHELON_{}?)", name, near));
}

}  // namespace

void apply_environment(Config& config, const std::vector<std::pair<std::string, std::string>>& environment,
                       std::vector<std::string>* notes) {
  std::vector<std::string> known;
  for (const auto& key : config_keys()) known.push_back(environment_name(key.section, key.name));
  for (const auto& [name, value] : environment) {
    const Origin origin{fmt::format("environment variable {}={}", name, value), false};
    if (name == "ECHELON_FAULT") {
      config.fault.inject = split_faults(value);
      config.origins["fault.inject"] = origin.name;
      continue;
    }
    const auto found = std::find(known.begin(), known.end(), name);
    if (found != known.end()) {
      const auto& key = config_keys()[static_cast<std::size_t>(found - known.begin())];
      apply_one(config, key.section, key.name, value, origin);
      continue;
    }
    // Other ECHELON_ variables (logging, tests) are not keys; one that names a section is a mistake.
    for (const std::string& section : section_names())
      if (const std::string start = environment_name(section, ""); name.starts_with(start)) {
        std::vector<std::string> of_section;  // includes the tables in it
        std::copy_if(known.begin(), known.end(), std::back_inserter(of_section),
                     [&](const std::string& other) { return other.starts_with(start); });
        throw ConfigError(fmt::format("{}: {}", origin.name, unknown_name("variable", name, of_section)));
      }
    note_unknown(name, known, notes);
  }
}

}  // namespace echelon::inline config
