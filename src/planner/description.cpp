// SPDX-License-Identifier: Apache-2.0
#include "planner/description.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/nearest.hpp"

namespace echelon::inline planner {
namespace {

// Writes "25gbit,jitter=0.1" as lines of TOML; a single word becomes base = "25gbit".
std::string as_toml(const std::string& argument) {
  std::string text;
  for (std::size_t begin = 0; begin <= argument.size();) {
    const std::size_t end = std::min(argument.find(',', begin), argument.size());
    std::string item = argument.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = item.find('=');
    const std::string key = equals == std::string::npos ? "base" : item.substr(0, equals);
    std::string value = equals == std::string::npos ? item : item.substr(equals + 1);
    TomlNode parsed;
    if (!read_toml_value(value, parsed)) value = "\"" + value + "\"";
    text += fmt::format("{} = {}\n", key, value);
  }
  return text;
}

}  // namespace

Description::Description(const std::string& argument, const std::string& option, const std::string& table)
    : source_(argument), option_(option), file_(argument.ends_with(".toml")) {
  if (!file_) {
    table_ = read_toml(as_toml(argument), option);
    return;
  }
  if (!std::filesystem::is_regular_file(argument))
    throw ConfigError(fmt::format("{} {}: no such file", option, argument));
  const TomlNode whole = read_toml(read_file_whole(argument), argument);
  for (const TomlEntry& entry : whole.entries)
    if (entry.key == table && entry.node.kind == TomlKind::table) {
      table_ = entry.node;
      return;
    }
  throw ConfigError(fmt::format("{} {}: has no table [{}]", option, argument, table));
}

const TomlNode* Description::find(const std::string& key) const {
  for (const TomlEntry& entry : table_.entries)
    if (entry.key == key) return &entry.node;
  return nullptr;
}

std::string Description::place(const TomlNode& node) const {
  return file_ ? fmt::format("{}:{}:{}", source_, node.line, node.column) : fmt::format("{} {}", option_, source_);
}

double Description::number(const std::string& key, double otherwise, double least, double most) {
  asked_.push_back(key);
  const TomlNode* node = find(key);
  if (!node) return otherwise;
  if (node->kind != TomlKind::integer && node->kind != TomlKind::real)
    throw ConfigError(fmt::format("{}: {} is {}, expected a number", place(*node), key, toml_kind_text(node->kind)));
  if (!(node->real >= least && node->real <= most))
    throw ConfigError(fmt::format("{}: {} = {}: must be {} to {}", place(*node), key, node->real, least, most));
  return node->real;
}

std::string Description::word(const std::string& key, const std::string& otherwise) {
  asked_.push_back(key);
  const TomlNode* node = find(key);
  if (!node) return otherwise;
  if (node->kind != TomlKind::text)
    throw ConfigError(fmt::format("{}: {} is {}, expected text", place(*node), key, toml_kind_text(node->kind)));
  return node->text;
}

void Description::refuse_others() const {
  for (const TomlEntry& entry : table_.entries)
    if (std::find(asked_.begin(), asked_.end(), entry.key) == asked_.end())
      throw ConfigError(fmt::format("{}: {}", place(entry.node), unknown_name("key", entry.key, asked_)));
}

void Description::refuse(const std::string& key, const std::string& why) const {
  const TomlNode* node = find(key);
  throw ConfigError(fmt::format("{}: {}", node ? place(*node) : option_ + " " + source_, why));
}

}  // namespace echelon::inline planner
