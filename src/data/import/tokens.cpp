// SPDX-License-Identifier: Apache-2.0
#include "data/import/tokens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "base/nearest.hpp"
#include "data/format.hpp"
#include "data/location.hpp"

namespace echelon::inline data {
namespace {

constexpr std::int64_t kUsualWords = 10000;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Returns the length of the UTF-8 character at this place in bytes; 0 if there is none.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xf0 && first < 0xf5   ? 4
                            : first >= 0xe0 && first < 0xf0 ? 3
                            : first >= 0xc2                 ? 2
                                                            : 0;
  if (bytes == 0 || first >= 0xf5 || at + bytes > text.size()) return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if (!is_continuation(text[at + i])) return 0;
  return bytes;
}

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

bool is_of_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || c == '\'' || c == '_';
}

}  // namespace

TokenKind token_kind_of(const std::string& name) {
  const std::vector<std::string> known{"characters", "bytes", "words", "verbatim"};
  const auto found = std::find(known.begin(), known.end(), name);
  if (found == known.end()) throw ConfigError(unknown_name("--tokens", name, known));
  return static_cast<TokenKind>(found - known.begin());
}

std::size_t token_bytes(std::string_view text, std::size_t at, TokenKind kind, const std::string& where) {
  if (text[at] == '\0')
    throw DataError(fmt::format("{}, column {}: a zero byte, which text must not hold", where, at + 1));
  if (kind == TokenKind::bytes) return 1;
  if (kind == TokenKind::characters) {
    if (const std::size_t bytes = character_bytes(text, at)) return bytes;
    throw DataError(fmt::format("{}, column {}: byte {:#04x} is not UTF-8; --tokens bytes accepts any byte", where,
                                at + 1, static_cast<unsigned char>(text[at])));
  }
  if (text[at] == '\n') return 1;
  std::size_t end = at;
  if (kind == TokenKind::verbatim) {
    while (end < text.size() && text[end] != '\0' && !is_blank(text[end])) ++end;
    return end - at;
  }
  if (const std::string_view unknown = kUnknownToken; text.substr(at, unknown.size()) == unknown) return unknown.size();
  if (!is_of_word(text[at])) return is_blank(text[at]) ? 0 : 1;
  while (end < text.size() && is_of_word(text[end])) ++end;
  return end - at;
}

void TokenCounts::add(std::string_view token) {
  const auto found = counts_.find(token);
  if (found != counts_.end())
    ++found->second;
  else
    counts_.emplace(std::string(token), 1);
}

Vocabulary TokenCounts::vocabulary(TokenKind kind, std::int64_t most, std::vector<std::string> special) const {
  std::vector<std::pair<std::string, std::int64_t>> tokens(counts_.begin(), counts_.end());
  std::sort(tokens.begin(), tokens.end());
  std::vector<std::string> entries = std::move(special);
  if (of_words(kind)) {
    entries.insert(entries.begin(), kUnknownToken);
    std::erase_if(tokens, [](const auto& token) { return token.first == kUnknownToken; });
    std::stable_sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    const std::int64_t usual = kind == TokenKind::words ? kUsualWords : std::numeric_limits<std::int64_t>::max();
    const auto room = static_cast<std::size_t>(
        std::max<std::int64_t>(0, (most > 0 ? most : usual) - static_cast<std::int64_t>(entries.size())));
    if (tokens.size() > room) tokens.resize(room);
  }
  for (const auto& [token, count] : tokens) entries.push_back(token);
  return Vocabulary(std::move(entries));
}

Vocabulary vocabulary_of_set(const std::string& location) {
  const std::vector<std::string> files = files_at(location);
  const h5::Reader reader(files.front());
  return Vocabulary::read(reader, sample_format::kVocabulary);
}

}  // namespace echelon::inline data
