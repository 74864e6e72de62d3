#include "config/toml_tree.hpp"

// toml++ 3.3 asserts on a heading such as "[=" before it reports the error itself: a user's slip must not abort.
#define TOML_ASSERT(expr) static_assert(true)

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "base/error.hpp"

namespace echelon {
namespace {

// toml++ keeps tables sorted by key; people read files from the top.
void sort_by_place(std::vector<TomlEntry>& entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const TomlEntry& a, const TomlEntry& b) {
    return a.line != b.line ? a.line < b.line : a.column < b.column;
  });
}

TomlNode convert(const toml::node& from) {
  TomlNode to;
  to.line = static_cast<int>(from.source().begin.line);
  to.column = static_cast<int>(from.source().begin.column);
  if (const auto* boolean = from.as_boolean()) {
    to.kind = TomlKind::boolean;
    to.boolean = boolean->get();
  } else if (const auto* integer = from.as_integer()) {
    to.kind = TomlKind::integer;
    to.integer = integer->get();
    to.real = static_cast<double>(to.integer);
  } else if (const auto* real = from.as_floating_point()) {
    to.kind = TomlKind::real;
    to.real = real->get();
  } else if (const auto* text = from.as_string()) {
    to.kind = TomlKind::text;
    to.text = text->get();
  } else if (const auto* array = from.as_array()) {
    to.kind = TomlKind::array;
    for (const toml::node& item : *array) to.items.push_back(convert(item));
  } else if (const auto* table = from.as_table()) {
    to.kind = TomlKind::table;
    for (const auto& [key, value] : *table)
      to.entries.push_back({std::string(key.str()), static_cast<int>(key.source().begin.line),
                            static_cast<int>(key.source().begin.column), convert(value)});
    sort_by_place(to.entries);
  } else {
    to.kind = TomlKind::date;
  }
  return to;
}

// The library's words, made a sentence of ours where people meet it most.
std::string syntax_text(std::string_view description) {
  const std::string_view twice = "cannot redefine existing ";
  if (const std::size_t at = description.find(twice); at != std::string_view::npos)
    return fmt::format("this is set twice: {}; write each key and each section once", description.substr(at));
  return fmt::format("not valid TOML: {}", description);
}

}  // namespace

std::string_view toml_kind_text(TomlKind kind) {
  switch (kind) {
    case TomlKind::boolean: return "true or false";
    case TomlKind::integer: return "a whole number";
    case TomlKind::real: return "a number with a fraction";
    case TomlKind::text: return "text in quotes";
    case TomlKind::date: return "a date";
    case TomlKind::array: return "a list";
    case TomlKind::table: return "a table";
  }
  return "?";
}

TomlNode read_toml(const std::string& text, const std::string& path) {
  try {
    return convert(toml::parse(text, path));
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw ConfigError(fmt::format("{}:{}:{}: {}", path, at.line, at.column, syntax_text(error.description())));
  }
}

bool read_toml_value(const std::string& text, TomlNode& value) {
  try {
    const TomlNode whole = convert(toml::parse("value = " + text));
    if (whole.entries.size() != 1 || text.find('\n') != std::string::npos) return false;
    value = whole.entries.front().node;
    return true;
  } catch (const toml::parse_error&) {
    return false;
  }
}

}  // namespace echelon
