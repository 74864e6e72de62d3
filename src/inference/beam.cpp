// SPDX-License-Identifier: Apache-2.0
#include "inference/beam.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.hpp"

namespace echelon::inline inference {
namespace {

// Log of the sum of exp(logit).
double log_sum(std::span<const double> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - top);
  const double log = top + std::log(sum);
  if (!std::isfinite(log)) throw NumericError("the logits of the model are not finite, so no token can be chosen");
  return log;
}

struct Live {
  std::vector<std::int32_t> tokens;
  double log_p = 0;
};

struct Continuation {
  double log_p;
  std::int64_t beam;
  std::int32_t token;
  bool before(const Continuation& other) const {
    if (log_p != other.log_p) return log_p > other.log_p;
    return beam != other.beam ? beam < other.beam : token < other.token;
  }
};

// The texts of one source so far.
class Source {
 public:
  explicit Source(const BeamOptions& options) : options_(options), live_(1) {}

  bool done() const { return done_; }
  std::int32_t newest(std::size_t beam) const {
    return beam >= live_.size() || live_[beam].tokens.empty() ? options_.start : live_[beam].tokens.back();
  }

  // `logits` (beams, classes). from: for each beam, the beam that it continues.
  void go_on(std::span<const double> logits, std::span<std::int64_t> from) {
    std::iota(from.begin(), from.end(), 0);
    if (done_) return;
    std::vector<Continuation> best = continuations(logits);
    std::vector<Live> next;
    for (const Continuation& one : best) {
      const Live& before = live_[static_cast<std::size_t>(one.beam)];
      if (one.token == options_.end) {
        finish(before.tokens, one.log_p);
        continue;
      }
      from[next.size()] = one.beam;
      next.push_back({before.tokens, one.log_p});
      next.back().tokens.push_back(one.token);
    }
    live_ = std::move(next);
    done_ = live_.empty();
  }

  FoundText take() { return std::move(best_); }

 private:
  // Returns the best continuations in order: as many as there are beams, minus the finished ones.
  std::vector<Continuation> continuations(std::span<const double> logits) const {
    const std::size_t classes = logits.size() / static_cast<std::size_t>(options_.beams);
    const bool last = std::ssize(live_.front().tokens) >= options_.longest;
    std::vector<Continuation> all;
    for (std::size_t beam = 0; beam < live_.size(); ++beam) {
      const std::span<const double> row = logits.subspan(beam * classes, classes);
      const double norm = log_sum(row);
      for (std::size_t token = 0; token < classes; ++token) {
        const auto id = static_cast<std::int32_t>(token);
        if (id != options_.start && (!last || id == options_.end))
          all.push_back({live_[beam].log_p + row[token] - norm, static_cast<std::int64_t>(beam), id});
      }
    }
    const auto kept = std::min(std::ssize(all), static_cast<std::ptrdiff_t>(options_.beams - finished_));
    std::partial_sort(all.begin(), all.begin() + kept, all.end(),
                      [](const Continuation& a, const Continuation& b) { return a.before(b); });
    all.resize(static_cast<std::size_t>(kept));
    return all;
  }

  void finish(const std::vector<std::int32_t>& tokens, double log_p) {
    ++finished_;
    const double score = log_p / std::pow(static_cast<double>(tokens.size() + 1), options_.length_penalty);
    if (score > best_.score) best_ = {tokens, score};
  }

  const BeamOptions& options_;
  std::vector<Live> live_;
  std::int64_t finished_ = 0;
  FoundText best_{.tokens = {}, .score = -std::numeric_limits<double>::infinity()};
  bool done_ = false;
};

}  // namespace

std::vector<FoundText> beam_search(TextModel& model, const BeamOptions& options) {
  const auto beams = static_cast<std::size_t>(options.beams);
  const auto rows = static_cast<std::size_t>(model.rows());
  std::vector<Source> sources(rows / beams, Source(options));
  std::vector<std::int32_t> tokens(rows);
  std::vector<std::int64_t> from(rows);
  const auto all_done = [&] {
    return std::all_of(sources.begin(), sources.end(), [](const Source& source) { return source.done(); });
  };
  while (!all_done()) {
    for (std::size_t row = 0; row < rows; ++row) tokens[row] = sources[row / beams].newest(row % beams);
    const std::span<const double> logits = model.read(tokens);
    const std::size_t share = logits.size() / sources.size();
    for (std::size_t s = 0; s < sources.size(); ++s) {
      const std::span<std::int64_t> own = std::span(from).subspan(s * beams, beams);
      sources[s].go_on(logits.subspan(s * share, share), own);
      for (std::int64_t& row : own) row += static_cast<std::int64_t>(s * beams);
    }
    if (options.beams > 1) model.go_on_from(from);
  }
  std::vector<FoundText> found;
  for (Source& source : sources) found.push_back(source.take());
  return found;
}

}  // namespace echelon::inline inference
