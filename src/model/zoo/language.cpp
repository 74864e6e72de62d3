// SPDX-License-Identifier: Apache-2.0
// Language models: an embedding, two recurrent layers, and at each position the next token. The labels of a text (T)
// are the same text shifted by one token; if each row of a batch continues its text, recurrent states are carried over.
// charlstm is the model of char-rnn (Karpathy 2015), wordlstm the medium model of Zaremba et al. 2014.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {
using namespace zoo;

namespace {

std::vector<LayerConfig> language_model(std::string_view name, const SampleForm& form, const std::string& cell,
                                        std::int64_t features, std::int64_t units) {
  if (!form.tokens() || form.shape.rank() != 1 || !(form.label == form.shape))
    throw ConfigError(
        fmt::format("{} takes texts, tokens (T) with a label at each position, but samples are {} {} and labels {}",
                    name, form.tokens() ? "tokens" : "numbers", form.shape.text(), form.label.text()));
  LayerConfig layer = recurrent(cell, units);
  layer.carry = form.stream;
  return {recurrent("embedding", features), layer, layer, dense(form.classes)};
}

}  // namespace

std::vector<LayerConfig> zoo_charlstm(const SampleForm& form) {
  return language_model("charlstm", form, "lstm", 64, 256);
}
std::vector<LayerConfig> zoo_chargru(const SampleForm& form) { return language_model("chargru", form, "gru", 64, 256); }
std::vector<LayerConfig> zoo_wordlstm(const SampleForm& form) {
  return language_model("wordlstm", form, "lstm", 650, 650);
}

}  // namespace echelon::inline model
