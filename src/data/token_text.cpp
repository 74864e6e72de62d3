// SPDX-License-Identifier: Apache-2.0
#include "data/token_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace echelon::inline data {
namespace {

// Whether the entry is a single token of this kind.
bool is_one(const std::string& entry, TokenKind kind) {
  try {
    return !entry.empty() && token_bytes(entry, 0, kind, {}) == entry.size();
  } catch (const DataError&) {
    return false;
  }
}

bool all_are(const Vocabulary& vocabulary, TokenKind kind) {
  return std::all_of(vocabulary.entries().begin(), vocabulary.entries().end(), [&](const std::string& entry) {
    return entry == kUnknownToken || entry == kStartToken || entry == kEndToken || is_one(entry, kind);
  });
}

}  // namespace

TokenKind token_kind_in(const Vocabulary& vocabulary) {
  if (vocabulary.find(kUnknownToken) < 0)
    for (const TokenKind kind : {TokenKind::characters, TokenKind::bytes})
      if (all_are(vocabulary, kind)) return kind;
  return all_are(vocabulary, TokenKind::words) ? TokenKind::words : TokenKind::verbatim;
}

std::string text_from(std::span<const std::int32_t> tokens, const Vocabulary& vocabulary, TokenKind kind) {
  std::string text;
  for (const std::int32_t token : tokens) {
    const std::string& entry = vocabulary[token];
    if (of_words(kind) && !text.empty() && text.back() != '\n' && entry != "\n") text += ' ';
    text += entry;
  }
  return text;
}

std::vector<std::int32_t> tokens_of(std::string_view text, const Vocabulary& vocabulary, TokenKind kind,
                                    const std::string& where) {
  std::vector<std::int32_t> tokens;
  for_tokens(text, kind, where, [&](std::string_view token) {
    tokens.push_back(vocabulary.id(token));
    if (tokens.back() < 0) throw DataError(fmt::format("{}: '{}' is not in the vocabulary", where, token_text(token)));
  });
  return tokens;
}

}  // namespace echelon::inline data
