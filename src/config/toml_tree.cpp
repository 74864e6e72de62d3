// SPDX-License-Identifier: Apache-2.0
#include "config/toml_tree.hpp"

// toml++ 3.3 asserts on a heading such as "[=" before it reports the error. A user's mistake must not abort the
// program.
#define TOML_ASSERT(expr) static_assert(true)

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "base/error.hpp"

namespace echelon::inline config {
namespace {

// Restores the order of the file, in which errors are reported; toml++ sorts tables by key.
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

// Returns the library's text, reworded for the most frequent error.
std::string syntax_text(std::string_view description) {
  const std::string_view twice = "cannot redefine existing ";
  if (const std::size_t at = description.find(twice); at != std::string_view::npos)
    return fmt::format("this is set twice: {}; write each key and each section once", description.substr(at));
  return fmt::format("not valid TOML: {}", description);
}

// Scans TOML text before it is parsed and finds where lists, tables or dotted keys are nested deeper than any key
// needs. toml++ recurses over each level, or takes quadratic time.
class DepthCheck {
 public:
  explicit DepthCheck(std::string_view text) : text_(text) {}

  // Returns false if the text is nested too deeply, with the place in line() and column().
  bool passes() {
    for (; at_ < text_.size(); ++at_) {
      if (!read_one()) return false;
    }
    return true;
  }
  int line() const { return line_; }
  int column() const { return static_cast<int>(at_ - line_start_) + 1; }

  static constexpr int kMost = 64;

 private:
  bool read_one() {
    switch (text_[at_]) {
      case '"':
      case '\'': skip_string(); return true;
      case '#': skip_comment(); return true;
      case '[':
      case '{': dots_ = 0; return ++depth_ <= kMost;
      case ']':
      case '}': depth_ = std::max(0, depth_ - 1); break;
      case '.': return ++dots_ < kMost;
      case '\n': next_line(at_); break;
      case '=':
      case ',': break;
      default: return true;
    }
    dots_ = 0;
    return true;
  }
  void next_line(std::size_t newline) {
    ++line_;
    line_start_ = newline + 1;
    dots_ = 0;
  }
  void skip_comment() {
    while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
  }
  // Skips to the closing quote. An unterminated string ends with its line; a multi-line one with the text.
  void skip_string() {
    const char quote = text_[at_];
    const std::string three(3, quote);
    const bool lines = text_.substr(at_, 3) == three;
    at_ += lines ? 3 : 1;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\' && quote == '"') {
        if (++at_ < text_.size() && text_[at_] == '\n') next_line(at_);
      } else if (lines ? text_.substr(at_, 3) == three : text_[at_] == quote) {
        at_ += lines ? 2 : 0;
        return;
      } else if (text_[at_] == '\n') {
        next_line(at_);
        if (!lines) return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1, depth_ = 0, dots_ = 0;
};

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
  DepthCheck depth(text);
  if (!depth.passes())
    throw ConfigError(
        fmt::format("{}:{}:{}: tables, lists or dotted keys are nested more than {} deep; no key of an "
                    "experiment needs more than 3",
                    path, depth.line(), depth.column(), DepthCheck::kMost));
  try {
    return convert(toml::parse(text, path));
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw ConfigError(fmt::format("{}:{}:{}: {}", path, at.line, at.column, syntax_text(error.description())));
  }
}

bool read_toml_value(const std::string& text, TomlNode& value) {
  if (!DepthCheck(text).passes()) return false;
  try {
    const TomlNode whole = convert(toml::parse("value = " + text));
    if (whole.entries.size() != 1 || text.find('\n') != std::string::npos) return false;
    value = whole.entries.front().node;
    return true;
  } catch (const toml::parse_error&) {
    return false;
  }
}

}  // namespace echelon::inline config
