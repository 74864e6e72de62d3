// SPDX-License-Identifier: Apache-2.0
#include "data/token_text.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace echelon {
namespace {

using Tokens = std::vector<std::int32_t>;

TEST_CASE("how a text was cut follows from its vocabulary", "[data]") {
  CHECK(token_kind_in(Vocabulary({"\n", " ", "a", "\xc3\xa9"})) == TokenKind::characters);
  CHECK(token_kind_in(Vocabulary({"a", "\xc3", "\xa9"})) == TokenKind::bytes);
  CHECK(token_kind_in(Vocabulary({"<s>", "</s>", "a", "b"})) == TokenKind::characters);
  CHECK(token_kind_in(Vocabulary({"<unk>", "a", "it's", ",", "\n"})) == TokenKind::words);
  CHECK(token_kind_in(Vocabulary({"<unk>", "<s>", "</s>", "seven"})) == TokenKind::words);
  CHECK(token_kind_in(Vocabulary({"seven", "eight"})) == TokenKind::words);
  CHECK(token_kind_in(Vocabulary({"<unk>", "u.s.", "N"})) == TokenKind::verbatim);
}

TEST_CASE("tokens become text and text tokens", "[data]") {
  const Vocabulary words({"<unk>", "\n", ",", "so", "it", "is"});
  const Tokens tokens = {3, 2, 4, 5, 1, 4, 0};
  CHECK(text_from(tokens, words, TokenKind::words) == "so , it is\nit <unk>");
  CHECK(tokens_of("so, it is\nit was", words, TokenKind::words, "--prompt") == tokens);
  const Vocabulary characters({"a", "b", "\xc3\xa9"});
  CHECK(text_from(Tokens{1, 2, 0}, characters, TokenKind::characters) ==
        "b\xc3\xa9"
        "a");
  CHECK(tokens_of("b\xc3\xa9", characters, TokenKind::characters, "--prompt") == Tokens{1, 2});
  CHECK_THROWS_AS(tokens_of("bad", characters, TokenKind::characters, "--prompt"), DataError);
  CHECK_THROWS_WITH(tokens_of("abd", characters, TokenKind::characters, "--prompt"),
                    Catch::Contains("--prompt: 'd' is not in the vocabulary"));
}

}  // namespace
}  // namespace echelon
