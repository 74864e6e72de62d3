// Text from a language model: the next token is drawn from softmax(logits / temperature), one after another.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "inference/step_model.hpp"

namespace echelon::inline inference {

struct SamplerOptions {
  double temperature = 1;  // 0: the likeliest token, the first of equals
  std::int64_t top_k = 0;  // only the likeliest so many are drawn; 0: all
  std::uint64_t seed = 1;
};

// The token at `place` of a text, a function of its arguments alone: a uniform draw of the hash of (seed, place), and
// sums in double. NumericError for logits that are not finite.
std::int32_t next_token(std::span<const double> logits, const SamplerOptions& options, std::int64_t place);

// Reads the prompt, at least one token, then calls take(token) for each of `count` new ones; the first row of the model
// alone is used.
void continue_text(TextModel& model, std::span<const std::int32_t> prompt, std::int64_t count,
                   const SamplerOptions& options, const std::function<void(std::int32_t)>& take);

}  // namespace echelon::inline inference
