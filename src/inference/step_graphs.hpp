// SPDX-License-Identifier: Apache-2.0
// Splits a model of sequences into an encoder, which runs once for a source text, and a step, which runs once for each
// token of the text that is written. The step reads one token and the recurrent states after the tokens before it, and
// gives the logits of the next one. So n tokens cost n steps, and no window is read again.
//
//   language models   samples (T) -> the next token at each position: the step is the whole model
//   translation       samples (T) and target (U) -> the next token of the target: everything that does not depend on
//                     the target is the encoder; its values are inputs of the step
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/sample_form.hpp"
#include "config/schema.hpp"
#include "model/graph.hpp"

namespace echelon::inline inference {

// A recurrent state (units) of the step.
struct StepState {
  std::string input;    // input of the step: the state before the token
  std::string output;   // value of the step: the state after it
  std::string initial;  // value of the encoder that initialises it; "": zeros
  std::int64_t units = 0;
};

struct StepGraphs {
  std::optional<Graph> encoder;     // reads "samples" (T) and "lengths"; none: there is no source
  std::vector<std::string> handed;  // values of the encoder that are inputs of the step
  Graph step;                       // without the loss
  std::vector<StepState> states;
  std::string token;     // input of the step, (1)
  std::string logits;    // value of the step, (1, classes)
  bool lengths = false;  // the step reads "lengths" of the source
};

// Returns the model's graphs for samples of this form, with T of a source from the form. Parameters keep their names.
// Throws ConfigError, with the layer, for a model that does not predict a token at each position, or whose step would
// have to look at other tokens than the newest (attention over them, positions, states from the end of the text).
StepGraphs step_graphs(const ModelConfig& model, SampleForm form);

}  // namespace echelon::inline inference
