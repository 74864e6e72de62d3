// SPDX-License-Identifier: Apache-2.0
#include "config/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"
#include "config/check_combinations.hpp"
#include "config/keys.hpp"
#include "config/unfit.hpp"

extern "C" char** environ;

namespace echelon::inline config {
namespace {

// Sections that only `echelon scale` reads (study/study.hpp, study/claim_section.hpp); they change no run.
constexpr std::array<std::string_view, 2> kStudySections = {"study", "claim"};

bool is_of_studies(std::string_view section) {
  return std::find(kStudySections.begin(), kStudySections.end(), section) != kStudySections.end();
}

[[noreturn]] void refuse(const Origin& origin, int line, int column, const std::string& why) {
  throw ConfigError(fmt::format("{}: {}", origin.at(line, column), why));
}

std::vector<std::string> keys_of(const std::string& section) {
  std::vector<std::string> names;
  for (const auto& key : config_keys())
    if (key.section == section) names.push_back(key.name);
  if (section == "model") names.emplace_back("layers");
  return names;
}

std::string heading(const std::string& section) {
  return section.empty() ? "the top of the file" : fmt::format("[{}]", section);
}

std::string path_of(const std::string& section, const std::string& key) {
  return section.empty() ? key : section + "." + key;
}

bool is_section(const std::string& path) {
  const auto sections = section_names();
  return std::find(sections.begin(), sections.end(), path) != sections.end();
}

// Returns the names of the tables in a section: "server" in "exchange".
std::vector<std::string> tables_in(const std::string& section) {
  std::vector<std::string> names;
  for (const std::string& path : section_names())
    if (path.find('.') != std::string::npos && path.substr(0, path.rfind('.')) == section)
      names.push_back(path.substr(path.rfind('.') + 1));
  return names;
}

[[noreturn]] void refuse_key(const std::string& section, const TomlEntry& entry, const Origin& origin) {
  if (is_section(path_of(section, entry.key)))
    refuse(origin, entry.line, entry.column,
           fmt::format("'{}' is a section, not a key: write [{}] on a line of its own, once, and its keys below",
                       entry.key, path_of(section, entry.key)));
  std::string elsewhere;
  for (const auto& key : config_keys()) {
    if (key.section == section) continue;
    const bool joins = environment_name(section, entry.key) == environment_name(key.section, key.name);
    if (key.name == entry.key || joins)
      elsewhere += fmt::format("{}{}{}", elsewhere.empty() ? " (it belongs to " : " or ", heading(key.section),
                               joins ? fmt::format(" as '{}'", key.name) : "");
  }
  if (!elsewhere.empty()) elsewhere += ")";
  const auto known = keys_of(section);
  const std::string near = elsewhere.empty() ? nearest_name(entry.key, known) : "";
  refuse(origin, entry.line, entry.column,
         fmt::format("unknown key '{}' in {}{}{}; known: {}", entry.key, heading(section), elsewhere,
                     near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near), joined(known)));
}

// Applies a top-level section, or a table within one; `path` is its full name.
void apply_section(Config& config, const std::string& path, const TomlEntry& section, const Origin& origin) {
  if (section.node.kind != TomlKind::table)
    refuse(origin, section.line, section.column,
           fmt::format("'{}' is a section, not {}: write [{}] on a line of its own, once, and its keys below", path,
                       toml_kind_text(section.node.kind), path));
  config.origins[path] = origin.at(section.line, section.column);
  const auto tables = tables_in(path), keys = keys_of(path);
  for (const TomlEntry& entry : section.node.entries) {
    if (is_section(path_of(path, entry.key)))
      apply_section(config, path_of(path, entry.key), entry, origin);
    else if (entry.node.kind == TomlKind::table && !tables.empty() &&
             std::find(keys.begin(), keys.end(), entry.key) == keys.end())
      refuse(origin, entry.line, entry.column, unknown_name("section of [" + path + "]", entry.key, tables));
    else
      apply_entry(config, path, entry, origin);
  }
}

std::vector<std::string> sections_of_a_file() {
  std::vector<std::string> names = section_names();
  names.insert(names.end(), kStudySections.begin(), kStudySections.end());
  return names;
}

// Applies the top-level keys and the sections of a whole document.
void apply_document(Config& config, const TomlNode& document, const Origin& origin) {
  for (const TomlEntry& entry : document.entries) {
    if (is_of_studies(entry.key)) continue;
    if (is_section(entry.key))
      apply_section(config, entry.key, entry, origin);
    else if (entry.node.kind == TomlKind::table)
      refuse(origin, entry.line, entry.column, unknown_name("section", entry.key, sections_of_a_file()));
    else
      apply_entry(config, "", entry, origin);
  }
}

}  // namespace

void apply_entry(Config& config, const std::string& section, const TomlEntry& entry, const Origin& origin) {
  const std::string path = path_of(section, entry.key);
  if (path == "model.layers") {
    config.model.layers = read_layers(entry.node, origin);
    config.origins[path] = origin.at(entry.line, entry.column);
    return;
  }
  const auto& keys = config_keys();
  const auto key = std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.path() == path; });
  if (key == keys.end()) refuse_key(section, entry, origin);
  key->set(config, read_value(entry.node, key->get(config), key->limits, path, origin));
  config.origins[path] = origin.at(entry.line, entry.column);
}

Config parse_config(const std::string& text, const std::string& path, const std::vector<std::string>& sets,
                    const std::vector<std::pair<std::string, std::string>>& environment,
                    std::vector<std::string>* notes) {
  Config config;
  config.file = path;
  const TomlNode document = read_toml(text, path);
  if (document.entries.empty())
    throw ConfigError(
        fmt::format("{}:1:1: the file holds no keys; an experiment needs at least [model] and [data]; known "
                    "sections: {}",
                    path, joined(section_names())));
  apply_document(config, document, {path, true});
  Config file_alone = config;
  settle_defaults(file_alone);
  apply_environment(config, environment, notes);
  apply_sets(config, sets);
  settle_defaults(config);
  const std::vector<std::string> left_out = give_way_to_overrides(config, file_alone);
  if (notes) notes->insert(notes->end(), left_out.begin(), left_out.end());
  return config;
}

Config load_config(const std::string& path, const std::vector<std::string>& sets, std::vector<std::string>* notes) {
  std::string text;
  try {
    text = read_file_whole(path);
  } catch (const Error& error) {
    throw ConfigError(fmt::format("the experiment's file {}", error.what()));
  }
  std::vector<std::pair<std::string, std::string>> environment;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string entry = *at;
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) environment.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  Config config = parse_config(text, path, sets, environment, notes);
  check_combinations(config);
  return config;
}

}  // namespace echelon::inline config
