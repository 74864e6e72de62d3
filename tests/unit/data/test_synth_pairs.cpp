// SPDX-License-Identifier: Apache-2.0
#include "data/import/synth_pairs.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

namespace echelon {
namespace {

std::string said(std::int64_t number) { return fmt::format("{}", fmt::join(number_words(number), " ")); }

TEST_CASE("numbers in English words", "[data]") {
  CHECK(said(0) == "zero");
  CHECK(said(13) == "thirteen");
  CHECK(said(20) == "twenty");
  CHECK(said(407) == "four hundred seven");
  CHECK(said(1000) == "one thousand");
  CHECK(said(90'011) == "ninety thousand eleven");
  CHECK(said(612'345) == "six hundred twelve thousand three hundred forty five");
}

TEST_CASE("made pairs are numbers and their words, the same each time", "[data]") {
  const auto source = make_number_pairs(300, 4);
  const SequenceInfo& info = source->info();
  SequenceRecord record;
  std::vector<std::vector<std::int32_t>> first;
  std::vector<int> by_length(7);
  for (int pass = 0; pass < 2; ++pass, source->rewind())
    for (std::size_t i = 0; source->next(record); ++i) {
      if (pass == 1) {
        CHECK(record.tokens == first[i]);
        continue;
      }
      first.push_back(record.tokens);
      ++by_length[record.tokens.size()];
      std::int64_t number = 0;
      for (const std::int32_t digit : record.tokens) number = 10 * number + digit;
      std::vector<std::string> words;
      for (const std::int32_t word : record.target) words.push_back(info.target_vocabulary[word]);
      CHECK(words == number_words(number));
    }
  CHECK(first.size() == 300);
  for (std::size_t length = 1; length <= 6; ++length) CHECK(by_length[length] > 20);
}

}  // namespace
}  // namespace echelon
