// SPDX-License-Identifier: Apache-2.0
// A wide and deep ranking model (Cheng et al. 2016) over fields of hashed features: a weight for every feature and
// class (wide), in addition to embeddings of 16 that feed dense layers of 128 and 64 (deep). With 26 fields over
// 100,000 features and 2 classes it has 1,861,762 parameters, nearly all of them in rows that a sample does not touch.
#include <fmt/format.h>

#include "base/error.hpp"
#include "model/zoo/parts.hpp"
#include "model/zoo/zoo.hpp"

namespace echelon::inline model {

using namespace zoo;

namespace {

LayerConfig embedding(std::int64_t units) {
  LayerConfig config = layer("embedding");
  config.units = units;
  config.sparse = true;
  return config;
}

}  // namespace

std::vector<LayerConfig> zoo_ranking(const SampleForm& form) {
  if (!form.tokens() || form.label.rank() != 0)
    throw ConfigError(fmt::format("ranking takes one token per field and one label per sample, but samples are {}{}",
                                  form.shape.text(), form.tokens() ? " tokens with a label for each" : " numbers"));
  Chain net;
  net.add(embedding(form.classes), {"samples"});
  LayerConfig sum = layer("sequence_pool");
  sum.mode = "sum";
  const std::string wide = net.add(sum);
  net.add(embedding(16), {"samples"});
  net.add(layer("flatten"));
  net.add(dense(128));
  net.add(layer("relu"));
  net.add(dense(64));
  net.add(layer("relu"));
  const std::string deep = net.add(dense(form.classes));
  net.add(layer("add"), {wide, deep});
  return net.take();
}

}  // namespace echelon::inline model
