// SPDX-License-Identifier: Apache-2.0
#include "inference/bleu.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

namespace echelon {
namespace {

using Tokens = std::vector<std::int32_t>;

double bleu(const std::vector<Tokens>& candidates, const std::vector<Tokens>& references) {
  BleuCounts counts;
  for (std::size_t i = 0; i < candidates.size(); ++i) counts.add(candidates[i], references[i]);
  return counts.value();
}

// The generator of the corpora below: Knuth's linear congruential generator, of which the upper 31 bits are used.
struct Draws {
  std::uint64_t state;
  std::int32_t below(std::int32_t bound) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int32_t>((state >> 33) % static_cast<std::uint64_t>(bound));
  }
};

// Returns BLEU of random references; in each candidate `noise` % of the tokens are drawn again, and up to two cut off.
double random_corpus(std::uint64_t seed, int texts, int vocabulary, int longest, int noise) {
  Draws draws{seed};
  std::vector<Tokens> candidates, references;
  for (int i = 0; i < texts; ++i) {
    Tokens reference(static_cast<std::size_t>(1 + draws.below(longest)));
    for (std::int32_t& token : reference) token = draws.below(vocabulary);
    Tokens candidate = reference;
    for (std::int32_t& token : candidate)
      if (draws.below(100) < noise) token = draws.below(vocabulary);
    const auto cut = static_cast<std::size_t>(draws.below(3));
    if (candidate.size() > cut) candidate.resize(candidate.size() - cut);
    references.push_back(reference);
    candidates.push_back(candidate);
  }
  return bleu(candidates, references);
}

TEST_CASE("BLEU by hand", "[inference][bleu]") {
  CHECK(bleu({{1, 2, 3, 4, 5}}, {{1, 2, 3, 4, 5}}) == Approx(100));
  // 5 of 6 tokens match (one of two 7s is clipped), 3 of 5 pairs, 2 of 4 triples, 1 of 3 fours.
  CHECK(bleu({{1, 2, 3, 4, 7, 7}}, {{1, 2, 3, 4, 9, 7}}) ==
        Approx(100 * std::pow(5.0 / 6 * 3 / 5 * 2 / 4 * 1 / 3, 0.25)));
  CHECK(bleu({{1, 2, 3, 4}}, {{1, 2, 3, 4, 5, 6}}) == Approx(100 * std::exp(1 - 6.0 / 4)));
  // Counts are added over texts before they are divided: 8 of 9, 5 of 7, 2 of 5, 1 of 3.
  CHECK(bleu({{1, 2, 3, 4}, {5, 6, 9, 7, 8}}, {{1, 2, 3, 4}, {5, 6, 0, 7, 8}}) ==
        Approx(100 * std::pow(8.0 / 9 * 5 / 7 * 2 / 5 * 1 / 3, 0.25)));
  // No pair matches: it counts as 1/2, a triple as 1/4, a four as 1/8.
  CHECK(bleu({{1, 9, 2, 8}}, {{1, 2, 3, 4}}) == Approx(100 * std::pow(2.0 / 4 * 0.5 / 3 * 0.25 / 2 * 0.125 / 1, 0.25)));
  CHECK(bleu({{1, 2, 3}}, {{1, 2, 3}}) == 0);
  CHECK(bleu({{1, 2, 3, 4}}, {{5, 6, 7, 8}}) == 0);
  CHECK(bleu({{}}, {{5, 6, 7, 8}}) == 0);
  CHECK(BleuCounts().value() == 0);
}

// The values come from sacrebleu.metrics.BLEU(tokenize="none").corpus_score.
TEST_CASE("BLEU of random texts is that of sacreBLEU 2.6", "[inference][bleu]") {
  CHECK(random_corpus(1, 50, 20, 12, 10) == Approx(70.29338822923242).epsilon(1e-12));
  CHECK(random_corpus(2, 50, 20, 12, 50) == Approx(18.00699671785809).epsilon(1e-12));
  CHECK(random_corpus(3, 20, 5, 30, 30) == Approx(52.8622640084287).epsilon(1e-12));
  CHECK(random_corpus(4, 10, 50, 6, 90) == Approx(4.8554976836697135).epsilon(1e-12));
  CHECK(random_corpus(5, 1, 10, 9, 40) == Approx(68.037493331712).epsilon(1e-12));
  CHECK(random_corpus(6, 3, 4, 3, 20) == Approx(0.0).epsilon(1e-12));
}

}  // namespace
}  // namespace echelon
