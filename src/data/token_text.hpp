// SPDX-License-Identifier: Apache-2.0
// Converts tokens of a vocabulary to text and back. A vocabulary does not record how its text was tokenised; this is
// inferred from its entries.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/import/tokens.hpp"
#include "data/vocabulary.hpp"

namespace echelon::inline data {

// Returns words if there is an entry <unk> or one of several characters, verbatim if an entry is not a single word;
// otherwise characters, or bytes if an entry is not UTF-8.
TokenKind token_kind_in(const Vocabulary& vocabulary);

// Joins words with blanks, except at the end of a line; characters and bytes are concatenated.
std::string text_from(std::span<const std::int32_t> tokens, const Vocabulary& vocabulary, TokenKind kind);

// Tokenises a text. Throws DataError, beginning with `where`, for a token outside a vocabulary without <unk>.
std::vector<std::int32_t> tokens_of(std::string_view text, const Vocabulary& vocabulary, TokenKind kind,
                                    const std::string& where);

}  // namespace echelon::inline data
