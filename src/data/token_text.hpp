// Text from the tokens of a vocabulary, and back. A vocabulary does not say how its text was cut: that follows from its
// entries.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/import/tokens.hpp"
#include "data/vocabulary.hpp"

namespace echelon::inline data {

// Words where there is an entry <unk> or one of several characters, verbatim ones where an entry is no word by itself;
// else characters, or bytes where an entry is no UTF-8.
TokenKind token_kind_in(const Vocabulary& vocabulary);

// Words with a blank between them, but none beside the end of a line; characters and bytes as they are.
std::string text_from(std::span<const std::int32_t> tokens, const Vocabulary& vocabulary, TokenKind kind);

// The tokens of a text. DataError, beginning with `where`, for what is not in the vocabulary, where it has no <unk>.
std::vector<std::int32_t> tokens_of(std::string_view text, const Vocabulary& vocabulary, TokenKind kind,
                                    const std::string& where);

}  // namespace echelon::inline data
