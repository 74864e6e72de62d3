// A model of sequences cut into what runs once for a source text and what runs once for each token of the text that is
// written: an encoder and a step. The step reads one token and the recurrent states after those before it, and gives
// the logits of the next one, so that n tokens cost n steps and no window is read again.
//
//   language models   samples (T) -> the next token at each place: all of the model is the step
//   translation       samples (T) and target (U) -> the next token of the target: what does not depend on the target is
//                     the encoder; its values are inputs of the step
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
  std::string input;    // of the step: the state before the token
  std::string output;   // value of the step: the state after it
  std::string initial;  // value of the encoder with which it begins; "": zeros
  std::int64_t units = 0;
};

struct StepGraphs {
  std::optional<Graph> encoder;     // reads "samples" (T) and "lengths"; none: there is no source
  std::vector<std::string> handed;  // values of the encoder that are inputs of the step
  Graph step;                       // no loss
  std::vector<StepState> states;
  std::string token;     // input of the step, (1)
  std::string logits;    // value of the step, (1, classes)
  bool lengths = false;  // the step reads "lengths" of the source
};

// The model's graphs for samples of this form; T of a source is that of the form. Parameters keep the names that they
// have in the whole model. ConfigError for a model that gives no token at each place, or whose step would have to look
// at other tokens than the newest (attention over them, positions, states from the end of the text), with the layer.
StepGraphs step_graphs(const ModelConfig& model, SampleForm form);

}  // namespace echelon::inline inference
