// SPDX-License-Identifier: Apache-2.0
// A TOML document as a plain tree with positions, which the rest of this room reads. Only toml_tree.cpp uses toml++.
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
  int line = 1;  // line and column are counted from 1
  int column = 1;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;  // also set for an integer
  std::string text;
  std::vector<TomlNode> items;     // array
  std::vector<TomlEntry> entries;  // table; in the order of the file
};

struct TomlEntry {
  std::string key;
  int line = 1;
  int column = 1;
  TomlNode node;
};

// "true or false", "text in quotes", ..: for error messages.
std::string_view toml_kind_text(TomlKind kind);

// Parses the whole document; tables are in the order of the file. Syntax errors, keys that are set twice and nesting of
// more than 64 levels are ConfigErrors that begin with "<path>:<line>:<column>". The depth is checked before parsing,
// so that no text can overflow the stack.
TomlNode read_toml(const std::string& text, const std::string& path);

// Parses one value as written after "=", on one line. Returns false if `text` is not a TOML value or is nested too
// deeply; never throws.
bool read_toml_value(const std::string& text, TomlNode& value);

}  // namespace echelon::inline config
