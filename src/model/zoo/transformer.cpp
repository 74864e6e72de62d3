// SPDX-License-Identifier: Apache-2.0
// A small decoder-only transformer language model (Vaswani et al. 2017, with normalisation before each part as in
// Radford et al. 2019): 128 features, 2 blocks of 4 heads and a hidden layer of 512, learned positions, no dropout. On
// windows of 64 tokens out of 65 it has 421,441 parameters: input and output embeddings are separate, keys have no bias
// (it would cancel in the softmax).
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

namespace {

constexpr std::int64_t kFeatures = 128, kHidden = 512, kHeads = 4;
constexpr int kBlocks = 2;

class Transformer {
 public:
  void embed() {
    LayerConfig tokens = layer("embedding");
    tokens.units = kFeatures;
    net_.add(tokens);
    net_.add(layer("position"));
  }

  // x + attention(norm(x)), then x + hidden(norm(x)).
  void block() {
    const std::string x = net_.last(), normed = net_.add(layer("layer_norm"));
    LayerConfig keys = dense(kFeatures);
    keys.bias = false;
    const std::string q = net_.add(dense(kFeatures), {normed}), k = net_.add(keys, {normed}),
                      v = net_.add(dense(kFeatures), {normed});
    LayerConfig attention = layer("attention");
    attention.heads = kHeads;
    attention.causal = true;
    net_.add(attention, {q, k, v});
    const std::string attended = net_.add(dense(kFeatures));
    const std::string sum = net_.add(layer("add"), {x, attended});
    net_.add(layer("layer_norm"));
    net_.add(dense(kHidden));
    net_.add(layer("gelu"));
    const std::string hidden = net_.add(dense(kFeatures));
    net_.add(layer("add"), {sum, hidden});
  }

  std::vector<LayerConfig> head(std::int64_t classes) {
    net_.add(layer("layer_norm"));
    net_.add(dense(classes));
    return net_.take();
  }

 private:
  Chain net_;
};

}  // namespace

std::vector<LayerConfig> zoo_transformer(const SampleForm& form) {
  if (!form.tokens() || form.label.rank() != 1)
    throw ConfigError(
        fmt::format("transformer is a language model and takes windows of tokens (T) with a label for each, but "
                    "samples are {}{}",
                    form.shape.text(), form.tokens() ? " tokens with one label" : " numbers"));
  Transformer net;
  net.embed();
  for (int i = 0; i < kBlocks; ++i) net.block();
  return net.head(form.classes);
}

}  // namespace echelon::inline model
