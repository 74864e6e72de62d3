// A TOML document as a plain tree with positions: what the rest of this room reads. toml++ stays in toml_tree.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::inline config {

enum class TomlKind : std::uint8_t { boolean, integer, real, text, date, array, table };

struct TomlEntry;

struct TomlNode {
  TomlKind kind = TomlKind::table;
  int line = 1;  // both counted from 1
  int column = 1;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;  // of an integer too
  std::string text;
  std::vector<TomlNode> items;     // array
  std::vector<TomlEntry> entries;  // table, in the order of the file
};

struct TomlEntry {
  std::string key;
  int line = 1;
  int column = 1;
  TomlNode node;
};

// "true or false", "text in quotes", ..: for error messages.
std::string_view toml_kind_text(TomlKind kind);

// The whole document, tables in the order of the file. Syntax errors, keys that are set twice and nesting of more than
// 64 levels are ConfigErrors that begin with "<path>:<line>:<column>". Depth is checked before parsing, so that no text
// can exhaust the stack.
TomlNode read_toml(const std::string& text, const std::string& path);

// One value as written behind "=", on one line. False where `text` is no TOML value or is nested too deep; never
// throws.
bool read_toml_value(const std::string& text, TomlNode& value);

}  // namespace echelon::inline config
