// SPDX-License-Identifier: Apache-2.0
// Reads one value from TOML, with its checks, and writes it back.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/error.hpp"
#include "base/nearest.hpp"
#include "config/keys.hpp"

namespace echelon::inline config {
namespace {

// Limits, name and origin of the value that is checked.
struct Place {
  const KeyLimits& limits;
  std::string_view key;
  const Origin& origin;

  [[noreturn]] void refuse(const TomlNode& node, const std::string& why) const {
    throw ConfigError(fmt::format("{}: {}", origin.at(node.line, node.column), why));
  }
};

std::string number_text(double value) {
  if (value == std::floor(value) && std::fabs(value) < 1e15) return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{}", value);
}

std::string range_text(const KeyLimits& limits) {
  if (limits.low > limits.high || (limits.low == 0 && limits.high == 0)) return {};
  if (limits.high >= 9e15) return fmt::format("at least {}", number_text(limits.low));
  return fmt::format("{} to {}", number_text(limits.low), number_text(limits.high));
}

std::string written(const TomlNode& node) {
  switch (node.kind) {
    case TomlKind::boolean: return node.boolean ? "true" : "false";
    case TomlKind::integer: return fmt::format("{}", node.integer);
    case TomlKind::real: return fmt::format("{}", node.real);
    case TomlKind::text: return fmt::format("\"{}\"", node.text);
    default: return std::string(toml_kind_text(node.kind));
  }
}

bool reads_as_number(const std::string& text, bool whole) {
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  double real = 0;
  if (text.empty()) return false;
  if (whole) {
    const auto [at, error] = std::from_chars(text.data(), end, integer);
    return at == end && error == std::errc();
  }
  return std::from_chars(text.data(), end, real).ptr == end;
}

[[noreturn]] void refuse_type(const TomlNode& node, std::string_view expected, const Place& place) {
  std::string hint;
  const bool number = expected.starts_with("a whole") || expected.starts_with("a number");
  if (node.kind == TomlKind::text && number && reads_as_number(node.text, expected.starts_with("a whole")))
    hint = fmt::format("; write {} = {} without quotes", place.key, node.text);
  if (node.kind == TomlKind::text && expected.starts_with("true") && (node.text == "true" || node.text == "false"))
    hint = fmt::format("; write {} = {} without quotes", place.key, node.text);
  if (node.kind == TomlKind::real && expected.starts_with("a whole") && std::fabs(node.real) < 1e15)
    hint = node.real == std::floor(node.real)
               ? fmt::format("; write {} without a decimal point or exponent", number_text(node.real))
               : fmt::format("; nearest valid: {}", number_text(std::round(node.real)));
  if (node.kind != TomlKind::table && node.kind != TomlKind::array && expected.starts_with("text"))
    hint = fmt::format("; write {} = \"{}\"", place.key, node.kind == TomlKind::text ? node.text : written(node));
  const std::string allowed = range_text(place.limits);
  place.refuse(node, fmt::format("{} = {}: expected {}{}{}", place.key, written(node), expected,
                                 allowed.empty() ? "" : ", " + allowed, hint));
}

void check_range(const TomlNode& node, const Place& place) {
  const KeyLimits& limits = place.limits;
  if (!std::isfinite(node.real)) place.refuse(node, fmt::format("{} = {}: must be finite", place.key, written(node)));
  if (limits.low > limits.high || (node.real >= limits.low && node.real <= limits.high)) return;
  place.refuse(node, fmt::format("{} = {} is out of range: {} (nearest valid: {})", place.key, written(node),
                                 range_text(limits), number_text(node.real < limits.low ? limits.low : limits.high)));
}

std::int64_t read_integer(const TomlNode& node, const Place& place) {
  if (node.kind != TomlKind::integer) refuse_type(node, "a whole number", place);
  check_range(node, place);
  return node.integer;
}

double read_real(const TomlNode& node, const Place& place) {
  if (node.kind != TomlKind::integer && node.kind != TomlKind::real) refuse_type(node, "a number", place);
  check_range(node, place);
  return node.real;
}

// Whether the bytes are valid UTF-8, with each character in its shortest form.
bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t more = lead < 0x80   ? 0
                             : lead < 0xc2 ? 4
                             : lead < 0xe0 ? 1
                             : lead < 0xf0 ? 2
                             : lead < 0xf5 ? 3
                                           : 4;
    if (more == 4 || i + more >= text.size()) return false;
    std::uint32_t point = more == 0 ? lead : lead & (0x3fU >> more);
    for (std::size_t j = 1; j <= more; ++j) {
      const auto next = static_cast<unsigned char>(text[i + j]);
      if ((next & 0xc0U) != 0x80) return false;
      point = point << 6 | (next & 0x3fU);
    }
    const bool surrogate = point >= 0xd800 && point < 0xe000;
    if ((more == 2 && point < 0x800) || (more == 3 && (point < 0x10000 || point > 0x10ffff)) || surrogate) return false;
    i += more + 1;
  }
  return true;
}

void check_plain_name(const TomlNode& node, const Place& place) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  std::string nearest = node.text;
  std::replace_if(
      nearest.begin(), nearest.end(), [&](char c) { return !allowed(c); }, '_');
  if (nearest.empty()) nearest = "run";
  if (nearest[0] == '.' || nearest[0] == '-') nearest[0] = '_';
  if (nearest.size() > 128) nearest.resize(128);
  if (nearest != node.text)
    place.refuse(node, fmt::format("{} = {}: a name has 1 to 128 letters, digits, '_', '-' and '.', and begins with a "
                                   "letter, digit or '_' (nearest valid: \"{}\")",
                                   place.key, written(node), nearest));
}

std::string read_text(const TomlNode& node, const Place& place) {
  if (node.kind != TomlKind::text) refuse_type(node, "text in quotes", place);
  const auto& words = place.limits.words;
  const bool may_be_empty = place.limits.or_empty && node.text.empty();
  if (!words.empty() && !may_be_empty && std::find(words.begin(), words.end(), node.text) == words.end())
    place.refuse(node, unknown_name(fmt::format("{}", place.key), node.text, words));
  if (place.limits.plain_name) check_plain_name(node, place);
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(node.text.begin(), node.text.end(), control))
    place.refuse(
        node, fmt::format("{} = {}: holds a control character, such as the end of a line", place.key, written(node)));
  if (!is_utf8(node.text)) place.refuse(node, fmt::format("{}: is not UTF-8", place.key));
  if (place.limits.filled && node.text.empty())
    place.refuse(node, fmt::format("{} = \"\": must not be empty; \".\" is the working directory", place.key));
  return node.text;
}

// Reads a list; a single value counts as a list of one.
template <class T, class Read>
std::vector<T> read_list(const TomlNode& node, const Place& place, const Read& read) {
  std::vector<T> out;
  if (node.kind != TomlKind::array) return {read(node, place)};
  for (const TomlNode& item : node.items) out.push_back(read(item, place));
  if (out.size() > place.limits.most)
    place.refuse(node,
                 fmt::format("{} has {} entries, at most {} are allowed", place.key, out.size(), place.limits.most));
  if (out.empty() && place.limits.most == 3)
    place.refuse(node, fmt::format("{} = []: expected 1 to 3 numbers", place.key));
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

// Returns the shortest digits that read back as the same number, always recognisable as a real.
std::string real_toml(double value) {
  std::string out = fmt::format("{}", value);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

// Writes a value as TOML.
struct Write {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return real_toml(v); }
  std::string operator()(const std::string& v) const { return quoted(v); }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    std::vector<std::string> parts;
    for (const T& item : list) parts.push_back((*this)(item));
    return "[" + joined(parts) + "]";
  }
};

}  // namespace

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : std::string(between)) + word;
  return out;
}

std::string Origin::at(int line, int column) const {
  return has_lines ? fmt::format("{}:{}:{}", name, line, column) : name;
}

KeyValue read_value(const TomlNode& node, const KeyValue& like, const KeyLimits& limits, std::string_view key,
                    const Origin& origin) {
  const Place place{limits, key, origin};
  struct Read {
    const TomlNode& node;
    const Place& place;
    KeyValue operator()(bool) const {
      if (node.kind != TomlKind::boolean) refuse_type(node, "true or false", place);
      return node.boolean;
    }
    KeyValue operator()(std::int64_t) const { return read_integer(node, place); }
    KeyValue operator()(double) const { return read_real(node, place); }
    KeyValue operator()(const std::string&) const { return read_text(node, place); }
    KeyValue operator()(const std::vector<std::int64_t>&) const {
      return read_list<std::int64_t>(node, place, read_integer);
    }
    KeyValue operator()(const std::vector<double>&) const { return read_list<double>(node, place, read_real); }
    KeyValue operator()(const std::vector<std::string>&) const {
      return read_list<std::string>(node, place, read_text);
    }
  };
  return std::visit(Read{node, place}, like);
}

std::string value_toml(const KeyValue& value) { return std::visit(Write{}, value); }

std::string type_text(const KeyValue& value, const KeyLimits& limits) {
  constexpr const char* names[] = {"true | false",  "whole number", "number", "text",
                                   "whole numbers", "numbers",      "names"};
  return value.index() == 3 && !limits.words.empty() ? "word" : names[value.index()];
}

std::string limits_text(const KeyValue& value, const KeyLimits& limits) {
  if (!limits.words.empty()) return fmt::format("{}", joined(limits.words, " | "));
  if (limits.plain_name) return "letters, digits, _ - .";
  return value.index() == 0 || value.index() == 3 ? std::string() : range_text(limits);
}

}  // namespace echelon::inline config
