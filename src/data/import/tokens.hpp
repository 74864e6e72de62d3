// SPDX-License-Identifier: Apache-2.0
// Tokenises text, and makes vocabularies from counts of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "data/vocabulary.hpp"

namespace echelon::inline data {

enum class TokenKind : std::uint8_t {
  characters,  // UTF-8 code points
  bytes,       // any bytes
  words,     // runs of letters, digits, ' and _; every other sign is a word, and so are "\n" and "<unk>" (the entry for
             // words outside the vocabulary); blanks are dropped
  verbatim,  // text that is already tokenised: tokens are separated by white space; "\n" ends each line
};
// Whether the kind has words, whose vocabulary has the entry <unk> for all other words.
inline bool of_words(TokenKind kind) { return kind == TokenKind::words || kind == TokenKind::verbatim; }
// "characters" | "bytes" | "words" | "verbatim"; throws ConfigError with the nearest for another name.
TokenKind token_kind_of(const std::string& name);

// Returns the length in bytes of the token at text[at], which must be the start of the text or the end of a token; 0: a
// blank that belongs to no token. Throws DataError, beginning with `where`, for bytes that are not UTF-8.
std::size_t token_bytes(std::string_view text, std::size_t at, TokenKind kind, const std::string& where);

// Calls body(token) for each token of a text.
template <class Body>
void for_tokens(std::string_view text, TokenKind kind, const std::string& where, Body&& body) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = token_bytes(text, at, kind, where);
    if (bytes > 0) body(text.substr(at, bytes));
    at += bytes > 0 ? bytes : 1;
  }
}

class TokenCounts {
 public:
  void add(std::string_view token);
  // Returns the entries: `special`, then for characters and bytes all counted tokens, sorted. For words: <unk> and the
  // most frequent ones, at most `most` entries in all (0: 10,000; verbatim: all); words with equal counts are in
  // alphabetical order.
  Vocabulary vocabulary(TokenKind kind, std::int64_t most, std::vector<std::string> special = {}) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> counts_;
};

// Reads the vocabulary of an imported data set from its first file. Throws DataError.
Vocabulary vocabulary_of_set(const std::string& location);

}  // namespace echelon::inline data
