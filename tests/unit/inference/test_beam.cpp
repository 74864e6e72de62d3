// SPDX-License-Identifier: Apache-2.0
#include "inference/beam.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/hash_rng.hpp"

namespace echelon {
namespace {

constexpr std::int32_t kStart = 0, kEnd = 1;
constexpr std::int64_t kClasses = 4;
using Tokens = std::vector<std::int32_t>;

// Returns the logits after a text: a hash of the source and of all tokens.
std::vector<double> logits_after(std::uint64_t source, const Tokens& read) {
  HashRng hash = HashRng(3, "texts").at(source);
  for (const std::int32_t token : read) hash = hash.at(static_cast<std::uint64_t>(token));
  std::vector<double> logits;
  for (std::uint64_t token = 0; token < kClasses; ++token) logits.push_back(3 * hash.uniform(token));
  return logits;
}

double log_p(const std::vector<double>& logits, std::int32_t token) {
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  return logits[static_cast<std::size_t>(token)] - std::log(sum);
}

// A model whose state is all that it has read.
class TableModel final : public TextModel {
 public:
  TableModel(std::int64_t sources, std::int64_t beams)
      : beams_(beams), read_(static_cast<std::size_t>(sources * beams)) {}
  std::int64_t rows() const override { return std::ssize(read_); }
  std::int64_t classes() const override { return kClasses; }
  std::span<const double> read(std::span<const std::int32_t> tokens) override {
    logits_.clear();
    for (std::size_t row = 0; row < read_.size(); ++row) {
      read_[row].push_back(tokens[row]);
      const std::vector<double> own = logits_after(row / static_cast<std::size_t>(beams_), read_[row]);
      logits_.insert(logits_.end(), own.begin(), own.end());
    }
    return logits_;
  }
  void go_on_from(std::span<const std::int64_t> from) override {
    const std::vector<Tokens> before = read_;
    for (std::size_t row = 0; row < read_.size(); ++row) read_[row] = before[static_cast<std::size_t>(from[row])];
  }

 private:
  std::int64_t beams_;
  std::vector<Tokens> read_;
  std::vector<double> logits_;
};

// Finds the best of all texts of at most `left` more tokens.
void try_all(std::uint64_t source, const Tokens& read, double log, std::int64_t left, double penalty, FoundText& best) {
  const std::vector<double> logits = logits_after(source, read);
  const double score = (log + log_p(logits, kEnd)) / std::pow(static_cast<double>(read.size()), penalty);
  if (score > best.score) best = {Tokens(read.begin() + 1, read.end()), score};
  if (left == 0) return;
  for (std::int32_t token = 2; token < kClasses; ++token) {
    Tokens longer = read;
    longer.push_back(token);
    try_all(source, longer, log + log_p(logits, token), left - 1, penalty, best);
  }
}

TEST_CASE("a beam of all texts finds the best of all", "[inference][beam]") {
  constexpr std::int64_t kSources = 20, kLongest = 4, kBeams = 64;
  for (const double penalty : {0.0, 0.6, 1.0, 2.0}) {
    TableModel model(kSources, kBeams);
    const std::vector<FoundText> found = beam_search(
        model, {.beams = kBeams, .length_penalty = penalty, .longest = kLongest, .start = kStart, .end = kEnd});
    REQUIRE(std::ssize(found) == kSources);
    for (std::size_t source = 0; source < found.size(); ++source) {
      FoundText best{.tokens = {}, .score = -std::numeric_limits<double>::infinity()};
      try_all(source, {kStart}, 0, kLongest, penalty, best);
      INFO("source " << source << ", penalty " << penalty);
      CHECK(found[source].tokens == best.tokens);
      CHECK(found[source].score == Approx(best.score));
    }
  }
}

TEST_CASE("a beam of one is greedy", "[inference][beam]") {
  constexpr std::int64_t kSources = 30, kLongest = 5;
  TableModel model(kSources, 1);
  const std::vector<FoundText> found =
      beam_search(model, {.beams = 1, .longest = kLongest, .start = kStart, .end = kEnd});
  std::size_t ended = 0;
  for (std::size_t source = 0; source < found.size(); ++source) {
    Tokens read = {kStart};
    for (std::int64_t t = 0; t < kLongest; ++t) {
      const std::vector<double> logits = logits_after(source, read);
      const auto likeliest =
          static_cast<std::int32_t>(std::max_element(logits.begin() + 1, logits.end()) - logits.begin());
      if (likeliest == kEnd) break;
      read.push_back(likeliest);
    }
    ended += std::ssize(read) <= kLongest ? 1 : 0;
    CHECK(found[source].tokens == Tokens(read.begin() + 1, read.end()));
  }
  CHECK(ended > 5);
  CHECK(ended < found.size());
}

// A model that is sure of the text 2 2 2 2 2; at each place the end is the second most likely token.
class SureModel final : public TextModel {
 public:
  explicit SureModel(std::int64_t beams) : beams_(beams) {}
  std::int64_t rows() const override { return beams_; }
  std::int64_t classes() const override { return kClasses; }
  std::span<const double> read(std::span<const std::int32_t>) override {
    logits_.clear();
    for (std::int64_t row = 0; row < beams_; ++row)
      logits_.insert(logits_.end(), {0.0, place_ < 5 ? 1.0 : 5.0, place_ < 5 ? 5.0 : 0.0, 0.0});
    ++place_;
    return logits_;
  }
  void go_on_from(std::span<const std::int64_t>) override {}

 private:
  std::int64_t beams_, place_ = 0;
  std::vector<double> logits_;
};

TEST_CASE("texts that end early and are unlikely do not take the place of one that is read on", "[inference][beam]") {
  for (const std::int64_t beams : {1, 2, 3, 4}) {
    SureModel model(beams);
    CHECK(beam_search(model, {.beams = beams, .longest = 9, .start = kStart, .end = kEnd}).front().tokens ==
          Tokens{2, 2, 2, 2, 2});
  }
}

TEST_CASE("a wider beam finds what is likelier", "[inference][beam]") {
  const auto mean = [](std::int64_t beams) {
    TableModel model(200, beams);
    double sum = 0;
    for (const FoundText& text :
         beam_search(model, {.beams = beams, .length_penalty = 0, .longest = 4, .start = kStart, .end = kEnd}))
      sum += text.score;
    return sum / 200;
  };
  CHECK(mean(1) < mean(2));
  CHECK(mean(2) < mean(8));
}

}  // namespace
}  // namespace echelon
