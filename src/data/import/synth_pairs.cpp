// SPDX-License-Identifier: Apache-2.0
#include "data/import/synth_pairs.hpp"

#include <array>

#include "base/error.hpp"
#include "base/hash_rng.hpp"

namespace echelon::inline data {
namespace {

constexpr std::array kBelowTwenty = {"zero",     "one",     "two",     "three",     "four",     "five",    "six",
                                     "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
                                     "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array kTens = {"twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
constexpr const char* kHundred = "hundred";
constexpr const char* kThousand = "thousand";
constexpr std::uint64_t kMostDigits = 6;

class NumberPairs final : public SequenceSource {
 public:
  NumberPairs(std::int64_t samples, std::uint64_t seed) : samples_(samples), draws_(seed, "numbers") {
    std::vector<std::string> digits, words = {kStartToken, kEndToken, kHundred, kThousand};
    for (char digit = '0'; digit <= '9'; ++digit) digits.emplace_back(1, digit);
    words.insert(words.end(), kBelowTwenty.begin(), kBelowTwenty.end());
    words.insert(words.end(), kTens.begin(), kTens.end());
    info_.kind = DataKind::pairs;
    info_.vocabulary = Vocabulary(std::move(digits));
    info_.target_vocabulary = Vocabulary(std::move(words));
  }

  const SequenceInfo& info() const override { return info_; }
  void rewind() override { next_ = 0; }

  bool next(SequenceRecord& record) override {
    if (next_ == samples_) return false;
    const HashRng draws = draws_.at(static_cast<std::uint64_t>(next_++));
    const std::uint64_t length = 1 + draws.below(0, kMostDigits);
    std::int64_t number = 0;
    record.tokens.clear();
    for (std::uint64_t position = 1; position <= length; ++position) {
      const bool leading = position == 1 && length > 1;
      const auto digit = static_cast<std::int32_t>(leading ? 1 + draws.below(position, 9) : draws.below(position, 10));
      record.tokens.push_back(digit);
      number = 10 * number + digit;
    }
    record.target.clear();
    for (const std::string& word : number_words(number)) record.target.push_back(info_.target_vocabulary.find(word));
    return true;
  }

 private:
  std::int64_t samples_, next_ = 0;
  HashRng draws_;
  SequenceInfo info_;
};

// Adds the words of a number from 1 to 999.
void add_below_thousand(std::int64_t number, std::vector<std::string>& words) {
  if (number >= 100) {
    words.emplace_back(kBelowTwenty[static_cast<std::size_t>(number / 100)]);
    words.emplace_back(kHundred);
  }
  number %= 100;
  if (number >= 20) {
    words.emplace_back(kTens[static_cast<std::size_t>(number / 10 - 2)]);
    number %= 10;
  }
  if (number > 0) words.emplace_back(kBelowTwenty[static_cast<std::size_t>(number)]);
}

}  // namespace

std::vector<std::string> number_words(std::int64_t number) {
  if (number == 0) return {kBelowTwenty[0]};
  std::vector<std::string> words;
  if (number >= 1000) {
    add_below_thousand(number / 1000, words);
    words.emplace_back(kThousand);
  }
  add_below_thousand(number % 1000, words);
  return words;
}

std::unique_ptr<SequenceSource> make_number_pairs(std::int64_t samples, std::uint64_t seed) {
  if (samples < 1) throw ConfigError("--samples must be 1 or more");
  return std::make_unique<NumberPairs>(samples, seed);
}

}  // namespace echelon::inline data
