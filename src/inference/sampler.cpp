// SPDX-License-Identifier: Apache-2.0
#include "inference/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/hash_rng.hpp"

namespace echelon::inline inference {
namespace {

// Returns the indices of the logits to draw from: all, or the `most` largest ones, in ascending order.
std::vector<std::int32_t> drawn_among(std::span<const double> logits, std::int64_t most) {
  std::vector<std::int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  if (most == 0 || most >= std::ssize(tokens)) return tokens;
  const auto larger = [&](std::int32_t a, std::int32_t b) {
    const double x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::nth_element(tokens.begin(), tokens.begin() + most - 1, tokens.end(), larger);
  tokens.resize(static_cast<std::size_t>(most));
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

}  // namespace

std::int32_t next_token(std::span<const double> logits, const SamplerOptions& options, std::int64_t position) {
  for (const double logit : logits)
    if (!std::isfinite(logit)) throw NumericError("the logits of the model are not finite, so no token can be chosen");
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  if (options.temperature == 0) return static_cast<std::int32_t>(likeliest - logits.begin());
  const std::vector<std::int32_t> tokens = drawn_among(logits, options.top_k);
  std::vector<double> weights;
  double sum = 0;
  for (const std::int32_t token : tokens) {
    const double weight = std::exp((logits[static_cast<std::size_t>(token)] - *likeliest) / options.temperature);
    weights.push_back(weight);
    sum += weight;
  }
  double left = HashRng(options.seed, "generated text").uniform(static_cast<std::uint64_t>(position)) * sum;
  std::size_t at = 0;
  for (; at + 1 < weights.size() && left >= weights[at]; ++at) left -= weights[at];
  while (at > 0 && weights[at] == 0) --at;  // rounding
  return tokens[at];
}

void continue_text(TextModel& model, std::span<const std::int32_t> prompt, std::int64_t count,
                   const SamplerOptions& options, const std::function<void(std::int32_t)>& take) {
  ECHELON_CHECK(!prompt.empty(), "the prompt must have at least one token");
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(model.rows()), 0);
  const auto read = [&](std::int32_t token) {
    tokens.front() = token;
    return model.read(tokens).first(static_cast<std::size_t>(model.classes()));
  };
  for (const std::int32_t token : prompt.first(prompt.size() - 1)) read(token);
  std::int32_t newest = prompt.back();
  for (std::int64_t position = 0; position < count; ++position)
    take(newest = next_token(read(newest), options, position));
}

}  // namespace echelon::inline inference
