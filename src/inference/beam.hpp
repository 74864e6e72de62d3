// Translations by beam search: of each source the texts with the largest log p(text </s> | source) / n^A, n the number
// of tokens with </s> (Sutskever et al. 2014; the normalisation of length as in fairseq, Ott et al. 2019, and A = 1 the
// mean of a token's log p).
#pragma once

#include <cstdint>
#include <vector>

#include "inference/step_model.hpp"

namespace echelon::inline inference {

struct BeamOptions {
  std::int64_t beams = 1;     // 1: greedy
  double length_penalty = 1;  // A; 0: none
  std::int64_t longest = 64;  // tokens without </s>; there every text ends
  std::int32_t start = 0, end = 1;
};

struct FoundText {
  std::vector<std::int32_t> tokens;  // without start and end
  double score = 0;
};

// The model stands at the beginning of rows() / beams sources; returns the best text of each. In each step the
// best continuations of a source's texts are kept, as many as `beams` without those that have finished: a text that
// ends takes its beam with it, so that no better one is given up for it. The start token is never written. Of equals
// the one in the earlier row, then of the lower number comes first. NumericError for logits that are not finite.
std::vector<FoundText> beam_search(TextModel& model, const BeamOptions& options);

}  // namespace echelon::inline inference
