// SPDX-License-Identifier: Apache-2.0
// Every type of layer that [[model.layers]] can name, with the keys it takes and the splits it supports. A new type
// needs a line here, its body in model/layers/<type>.cpp, and a row in tests/support/layer_rows.cpp. A key that no
// layer had before also needs a field of LayerConfig and a line in config/keys/layers.cpp.
//
// tests/contract/test_declared.cpp compares `splits` with the bodies.
#pragma once

#include "config/traits/words.hpp"

namespace echelon::inline config {

struct LayerTraits {
  std::string_view name;
  Words takes = {};              // keys besides type, name, inputs and stage
  Words needs = {};              // keys among them (or `inputs`) that must be given
  std::string_view inputs = {};  // for errors and --keys, if a layer does not take exactly one input
  // The keys of [parallel] that split it: tensor (its units), space (rows of images), time_chunks (steps of sequences).
  // Under the other keys it stays whole, or is whole on each rank.
  Words splits = {};
  bool takes_means = false;  // computes means over a micro-batch's samples, including those of weight 0
};

// clang-format off
#define ECHELON_LAYERS(X)                                                                                              \
  X(conv, .takes = {"channels", "kernel", "stride", "padding", "dilation", "groups", "bias", "init", "init_range"},    \
    .needs = {"channels", "kernel"}, .splits = {"tensor", "space"})                                                    \
  X(max_pool, .takes = {"kernel", "stride", "padding"}, .needs = {"kernel"}, .splits = {"tensor", "space"})            \
  X(avg_pool, .takes = {"kernel", "stride", "padding", "count_padding"}, .needs = {"kernel"},                          \
    .splits = {"tensor", "space"})                                                                                     \
  X(global_avg_pool, .splits = {"tensor"})                                                                             \
  X(dense, .takes = {"units", "bias", "weights_of", "init", "init_range"}, .needs = {"units"}, .splits = {"tensor", "time_chunks"})  \
  X(relu, .splits = {"tensor", "space", "time_chunks"})                                                                \
  X(tanh, .splits = {"tensor", "space", "time_chunks"})                                                                \
  X(sigmoid, .splits = {"tensor", "space", "time_chunks"})                                                             \
  X(gelu, .splits = {"tensor", "space", "time_chunks"})                                                                \
  X(leaky_relu, .takes = {"slope"}, .splits = {"tensor", "space", "time_chunks"})                                      \
  X(elu, .takes = {"alpha"}, .splits = {"tensor", "space", "time_chunks"})                                             \
  X(softplus, .splits = {"tensor", "space", "time_chunks"})                                                            \
  X(scale, .takes = {"alpha"}, .needs = {"alpha"}, .splits = {"tensor", "space", "time_chunks"})                       \
  X(conv_transpose,                                                                                                    \
    .takes = {"channels", "kernel", "stride", "padding", "output_padding", "dilation", "groups", "bias", "init",       \
              "init_range"},                                                                                           \
    .needs = {"channels", "kernel"}, .splits = {"space"})                                                              \
  X(upsample, .takes = {"mode", "factor"}, .needs = {"mode", "factor"}, .splits = {"tensor", "space"})                 \
  X(batch_norm, .takes = {"epsilon", "momentum", "synchronised", "renorm", "r_max", "d_max"},                          \
    .splits = {"tensor", "space"}, .takes_means = true)                                                                \
  X(layer_norm, .takes = {"epsilon"}, .splits = {"time_chunks"})                                                       \
  X(lrn, .takes = {"size", "alpha", "beta", "k"}, .splits = {"space"})                                                 \
  X(dropout, .takes = {"rate"}, .splits = {"tensor", "space", "time_chunks"})                                          \
  X(flatten, .splits = {"tensor"})                                                                                     \
  X(add, .needs = {"inputs"}, .inputs = "2 or more inputs of one shape", .splits = {"space", "time_chunks"})           \
  X(concat, .needs = {"inputs"}, .inputs = "2 or more inputs, joined along channels or features",                      \
    .splits = {"space", "time_chunks"})                                                                                \
  X(position)                                                                                                          \
  X(attention, .takes = {"heads", "causal"}, .inputs = "3 inputs: queries, keys, values")                              \
  X(sequence_pool, .takes = {"mode"})                                                                                  \
  X(embedding, .takes = {"units", "vocabulary", "sparse", "init", "init_range"},                                       \
    .needs = {"units"}, .splits = {"tensor", "time_chunks"})                                                           \
  X(rnn, .takes = {"units", "activation", "reverse", "carry", "init", "init_range"}, .needs = {"units"},               \
    .inputs = "1 input, or 2: a sequence, the state of another layer (NAME.1)", .splits = {"tensor", "time_chunks"})   \
  X(lstm, .takes = {"units", "reverse", "carry", "init", "init_range"}, .needs = {"units"},                            \
    .inputs = "1 input, or 3: a sequence, states h and c (NAME.1, NAME.2)", .splits = {"tensor", "time_chunks"})       \
  X(gru, .takes = {"units", "reverse", "carry", "init", "init_range"}, .needs = {"units"},                             \
    .inputs = "1 input, or 2: a sequence, the state of another layer (NAME.1)", .splits = {"tensor", "time_chunks"})
// clang-format on

#define X(type, ...) LayerTraits{.name = #type, __VA_ARGS__},
inline constexpr LayerTraits kLayers[] = {ECHELON_LAYERS(X)};
#undef X

}  // namespace echelon::inline config
