// SPDX-License-Identifier: Apache-2.0
// Generates text from a language model: draws one token after another from softmax(logits / temperature).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "inference/step_model.hpp"

namespace echelon::inline inference {

struct SamplerOptions {
  double temperature = 1;  // 0: takes the likeliest token, the first of equal ones
  std::int64_t top_k = 0;  // draws only from this many likeliest tokens; 0: from all
  std::uint64_t seed = 1;
};

// Returns the token at `position` of a text. It depends only on the arguments: a uniform draw is the hash of (seed,
// position), and sums are in double. Throws NumericError for logits that are not finite.
std::int32_t next_token(std::span<const double> logits, const SamplerOptions& options, std::int64_t position);

// Reads the prompt, at least one token, then calls take(token) for each of `count` new ones. Uses only the first row of
// the model.
void continue_text(TextModel& model, std::span<const std::int32_t> prompt, std::int64_t count,
                   const SamplerOptions& options, const std::function<void(std::int32_t)>& take);

}  // namespace echelon::inline inference
