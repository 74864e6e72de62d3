// SPDX-License-Identifier: Apache-2.0
// BLEU of a corpus (Papineni et al. 2002) over n-grams of 1 to 4 tokens with one reference per text, as sacreBLEU
// computes it by default (Post 2018, version 2; sacrebleu/metrics/bleu.py). Matching n-grams, clipped at those of the
// reference, are summed over all texts; BLEU = BP * exp(mean over n of log p_n), with BP = exp(1 - reference /
// candidate tokens) if candidates are shorter, else 1. The i-th order without a match counts as 1 / 2^i of an n-gram
// (smoothing "exp"). BLEU is 0 without any match, or without candidates of 4 tokens.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace echelon::inline inference {

class BleuCounts {
 public:
  static constexpr std::size_t kOrders = 4;

  void add(std::span<const std::int32_t> candidate, std::span<const std::int32_t> reference);
  double value() const;  // in percent
  // "98.31 (n-grams of 1 to 4: 99.2, 98.5, 97.9, 97.1 %; brevity 1.000)"
  std::string text() const;
  // All counts, to be summed over ranks.
  std::span<double> counts() { return counts_; }
  std::int64_t texts() const { return static_cast<std::int64_t>(counts_[kTexts]); }

 private:
  enum At : std::size_t { kTexts = 0, kCandidate = 1, kReference = 2, kMatches = 3, kTotals = kMatches + kOrders };
  std::array<double, kOrders> precisions() const;  // in percent, smoothed
  double brevity() const;

  std::array<double, kTotals + kOrders> counts_{};
};

}  // namespace echelon::inline inference
