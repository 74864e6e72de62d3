// SPDX-License-Identifier: Apache-2.0
#include "base/escape.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace echelon::inline base {
namespace {

// Length in bytes of the UTF-8 character at `at`; 0: not UTF-8.
std::size_t length_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(at + 1) < 0xa0) || (first == 0xf0 && byte(at + 1) < 0x90);
  const bool no_character = (first == 0xed && byte(at + 1) >= 0xa0) || (first == 0xf4 && byte(at + 1) >= 0x90);
  return overlong || no_character ? 0 : length;
}

// Whether it is a C0 control, DEL or a C1 control.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

// Calls `add` with each character as a view; "?" for unprintable ones. Newlines and tabs stay.
template <class Add>
void each_character(std::string_view text, const Add& add) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_at(text, at);
    const std::string_view character = text.substr(at, std::max<std::size_t>(length, 1));
    const bool space = character == "\n" || character == "\t";
    add(length == 0 || (is_control(character) && !space) ? std::string_view("?") : character);
    at += character.size();
  }
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool is_code(std::string_view text) {
  return text.size() > 2 && text.front() == '`' && text.back() == '`' &&
         std::all_of(text.begin() + 1, text.end() - 1, [](char c) { return is_word(c) || c == '_' || c == '.'; });
}

// Escapes the start of a line that Markdown would show as a heading, quotation, rule or list item.
std::string without_block(std::string text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const char after = digits + 1 < text.size() ? text[digits + 1] : ' ';
  if (digits > 0 && digits < text.size() && (text[digits] == '.' || text[digits] == ')') && after == ' ')
    return text.insert(digits, "\\");
  if (text.starts_with('#') || text.starts_with('>') || text.starts_with("- ") || text.starts_with("+ ") ||
      text.starts_with("--") || text.starts_with("=="))
    return "\\" + text;
  return text;
}

}  // namespace

std::string escaped_for_markup(const std::string& text) {
  std::string out;
  each_character(text, [&](std::string_view c) {
    if (c == "&")
      out += "&amp;";
    else if (c == "<")
      out += "&lt;";
    else if (c == ">")
      out += "&gt;";
    else if (c == "\"")
      out += "&quot;";
    else if (c == "\n" || c == "\t")
      out += " ";
    else
      out += c;
  });
  return out;
}

std::string escaped_for_markdown(const std::string& text) {
  if (is_code(text)) return text;
  constexpr std::string_view kMarks = "\\`*[]|$";
  std::string plain, out;
  each_character(text, [&](std::string_view c) { plain += c == "\n" || c == "\t" ? std::string_view(" ") : c; });
  for (std::size_t at = 0; at < plain.size(); ++at) {
    const char c = plain[at], before = at > 0 ? plain[at - 1] : ' ',
               after = at + 1 < plain.size() ? plain[at + 1] : ' ';
    const bool mark = kMarks.find(c) != std::string_view::npos || (c == '_' && !(is_word(before) && is_word(after))) ||
                      (c == '~' && (before == '~' || after == '~'));
    if (c == '<')
      out += "&lt;";
    else if (c == '&' && (is_word(after) || after == '#'))
      out += "&amp;";
    else
      out += mark ? std::string{'\\', c} : std::string{c};
  }
  return without_block(std::move(out));
}

std::string escaped_for_terminal(const std::string& text) {
  std::string out;
  each_character(text, [&](std::string_view c) { out += c; });
  return out;
}

std::size_t begun_bytes(const std::string& text) {
  for (std::size_t bytes = 1; bytes <= std::min<std::size_t>(3, text.size()); ++bytes) {
    const auto first = static_cast<unsigned char>(text[text.size() - bytes]);
    if (first >= 0xc2 && first < 0xf5) return bytes < (first < 0xe0 ? 2U : first < 0xf0 ? 3U : 4U) ? bytes : 0;
    if ((first & 0xc0) != 0x80) return 0;
  }
  return 0;
}

}  // namespace echelon::inline base
