// SPDX-License-Identifier: Apache-2.0
// Models of whole sequences, which predict one class or another sequence for each.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {
using namespace zoo;

// A bidirectional LSTM (Schuster, Paliwal 1997) whose last states in both directions are classified.
std::vector<LayerConfig> zoo_sequence_classifier(const SampleForm& form) {
  const bool fits = form.label.rank() == 0 && form.shape.rank() == (form.tokens() ? 1 : 2);
  if (!fits)
    throw ConfigError(
        fmt::format("sequence_classifier takes sequences, tokens (T) or features (T, F), with one class each, but "
                    "samples are {} {} "
                    "and labels {}",
                    form.tokens() ? "tokens" : "numbers", form.shape.text(), form.label.text()));
  Chain chain;
  std::string x = "samples";
  if (form.tokens()) x = chain.add(recurrent("embedding", 64));
  const std::string onward = chain.add(recurrent("lstm", 128), {x});
  LayerConfig back = recurrent("lstm", 128);
  back.reverse = true;
  const std::string backward = chain.add(back, {x});
  chain.add(layer("concat"), {onward + ".1", backward + ".1"});
  chain.add(dense(form.classes));
  return chain.take();
}

// An encoder whose last states begin a decoder (Sutskever et al. 2014), to which the correct text so far is fed.
std::vector<LayerConfig> zoo_translation(const SampleForm& form) {
  if (!form.tokens() || form.shape.rank() != 1 || form.target == 0 || !(form.label == Shape{form.target}))
    throw ConfigError(
        fmt::format("translation takes pairs of texts, tokens (T) and a target (U) with a label at each position, but "
                    "samples are {} "
                    "{}, the target is {} and labels are {}",
                    form.tokens() ? "tokens" : "numbers", form.shape.text(), form.target, form.label.text()));
  Chain chain;
  chain.add(recurrent("embedding", 64), {"samples"});
  const std::string encoder = chain.add(recurrent("lstm", 256));
  const std::string target = chain.add(recurrent("embedding", 64), {"target"});
  chain.add(recurrent("lstm", 256), {target, encoder + ".1", encoder + ".2"});
  chain.add(dense(form.classes));
  return chain.take();
}

}  // namespace echelon::inline model
