// SPDX-License-Identifier: Apache-2.0
// Translation by beam search. For each source it searches the texts with the largest log p(text </s> | source) / n^A,
// where n is the number of tokens with </s> (Sutskever et al. 2014; length normalisation as in fairseq, Ott et al.
// 2019; with A = 1 it is the mean log p of a token).
#pragma once

#include <cstdint>
#include <vector>

#include "inference/step_model.hpp"

namespace echelon::inline inference {

struct BeamOptions {
  std::int64_t beams = 1;     // 1: greedy
  double length_penalty = 1;  // exponent A; 0: no normalisation
  std::int64_t longest = 64;  // tokens without </s>; all texts end at this length
  std::int32_t start = 0, end = 1;
};

struct FoundText {
  std::vector<std::int32_t> tokens;  // without start and end
  double score = 0;
};

// The model must be at the start of rows() / beams sources. Returns the best text of each. In each step the best
// continuations of a source's texts are kept: `beams` minus the number of finished texts, so that a text that ends
// takes its beam with it, and no better one is given up for it. The start token is never written. Ties are broken by
// the earlier row, then by the lower token number. Throws NumericError for logits that are not finite.
std::vector<FoundText> beam_search(TextModel& model, const BeamOptions& options);

}  // namespace echelon::inline inference
