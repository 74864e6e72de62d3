// Text cut into tokens, and the vocabularies that follow from counting them.
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
  characters,  // of UTF-8
  bytes,       // any
  words,  // runs of letters, digits, ' and _; every other sign by itself, blanks left out, "\n" a word of its own and
          // so is "<unk>", the entry for words outside the vocabulary
};
// "characters" | "bytes" | "words"; ConfigError with the nearest.
TokenKind token_kind_of(const std::string& name);

// Bytes of the token that begins at text[at]; 0: a blank that is none. `at` may be any place where a token ends.
// Throws DataError where the bytes there are no UTF-8, beginning with `where`.
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
  // `special` first. Characters and bytes: all of them, sorted. Words: <unk> and the most frequent, so that there are
  // `most` in all; words as frequent as each other by their text.
  Vocabulary vocabulary(TokenKind kind, std::int64_t most, std::vector<std::string> special = {}) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>> counts_;
};

// The vocabulary of a set that was imported before: of its first file.
Vocabulary vocabulary_of_set(const std::string& location);

}  // namespace echelon::inline data
