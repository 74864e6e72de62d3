// SPDX-License-Identifier: Apache-2.0
// [[model.layers]]; config/traits/layers.hpp says which type takes which keys.
#include "config/traits/layers.hpp"
#include "config/keys/section.hpp"

namespace echelon::inline config::keys {

void add_layer(LayerTable& all) {
  Section<LayerConfig, LayerConfig> layer(all, "model.layers",
                                          [](LayerConfig& config) -> LayerConfig& { return config; });
  layer.key("type", &LayerConfig::type, words(names_in(kLayers)), "");
  layer.key("name", &LayerConfig::name, plain_name(), "default: type and a number, conv1");
  layer.key("inputs", &LayerConfig::inputs, plain_name(), "names of layers; default: the layer before");
  layer.key("stage", &LayerConfig::stage, range(-1, 4095), "parallel.pipeline: its stage; -1: chosen by cost");
  layer.key("channels", &LayerConfig::channels, range(1, 1e6), "conv, conv_transpose: output channels");
  layer.key("units", &LayerConfig::units, range(1, 1e8),
            "dense: outputs; embedding: features; rnn, lstm, gru: size of the state");
  layer.key("kernel", &LayerConfig::kernel, per_axis(1, 4096), "conv, pools: one number, or one for each spatial axis");
  layer.key("stride", &LayerConfig::stride, per_axis(1, 4096), "as kernel; default 1 (conv), the kernel (pools)");
  layer.key("padding", &LayerConfig::padding, per_axis(0, 4096), "default 0");
  layer.key("dilation", &LayerConfig::dilation, per_axis(1, 4096), "conv, conv_transpose; default 1");
  layer.key("output_padding", &LayerConfig::output_padding, per_axis(0, 4096),
            "conv_transpose: rows and columns more, below the stride; default 0");
  layer.key("factor", &LayerConfig::factor, per_axis(1, 4096), "upsample: one number, or one for each spatial axis");
  layer.key("groups", &LayerConfig::groups, range(1, 1e6), "conv");
  layer.key("bias", &LayerConfig::bias, {}, "conv, dense");
  layer.key("count_padding", &LayerConfig::count_padding, {}, "avg_pool: padding is counted in the divisor");
  layer.key("epsilon", &LayerConfig::epsilon, range(1e-12, 1), "batch_norm, layer_norm");
  layer.key("momentum", &LayerConfig::momentum, range(0, 1), "batch_norm: weight of the newest statistics");
  layer.key("synchronised", &LayerConfig::synchronised, {}, "batch_norm: statistics over all replicas' samples");
  layer.key("renorm", &LayerConfig::renorm, {}, "batch_norm: corrected towards the running statistics");
  layer.key("r_max", &LayerConfig::r_max, range(1, 1e6), "batch_norm with renorm: bound of the correction's factor");
  layer.key("d_max", &LayerConfig::d_max, range(0, 1e6), "batch_norm with renorm: bound of its shift");
  layer.key("rate", &LayerConfig::rate, range(0, 0.999), "dropout: share of zeros");
  layer.key("size", &LayerConfig::size, range(1, 4096), "lrn: channels of a window");
  layer.key("alpha", &LayerConfig::alpha, range(0, 1e6),
            "lrn: weight of the window's mean square, 0: 1e-4; elu: bound below 0, 0: 1; scale: the factor");
  layer.key("slope", &LayerConfig::slope, range(0, 1), "leaky_relu: factor of negative values");
  layer.key("beta", &LayerConfig::beta, range(0, 100), "lrn: exponent");
  layer.key("heads", &LayerConfig::heads, range(1, 4096), "attention");
  layer.key("causal", &LayerConfig::causal, {}, "attention: later positions are masked");
  layer.key("mode", &LayerConfig::mode, words({"sum", "mean", "last", "nearest", "linear"}),
            "sequence_pool: sum, mean, last; upsample: nearest, linear");
  layer.key("k", &LayerConfig::k, range(1e-6, 1e6), "lrn: constant that the mean square is added to");
  layer.key("vocabulary", &LayerConfig::vocabulary, range(0, 1e9),
            "embedding: rows of the table; 0: as many as the data has tokens");
  layer.key("sparse", &LayerConfig::sparse, {},
            "embedding: sparse gradient: only the rows that a step touches are stored, applied and sent");
  layer.key("activation", &LayerConfig::activation, words({"tanh", "relu"}), "rnn");
  layer.key("reverse", &LayerConfig::reverse, {}, "rnn, lstm, gru: from the end of the sequence to its beginning");
  layer.key("carry", &LayerConfig::carry, {},
            "rnn, lstm, gru: the final states of a batch are the initial states of the next one");
  layer.younger();
  layer.key("weights_of", &LayerConfig::weights_of, plain_name(),
            "dense: name of the embedding before it whose table is its weights");
  layer.key("init", &LayerConfig::init, words_or_empty({"default", "uniform", "he", "orthogonal"}),
            "layers with weights: initial values, as model.init, which the empty word follows");
  layer.key("init_range", &LayerConfig::init_range, range(0, 100), "init uniform: 0: model.init_range");
}

}  // namespace echelon::inline config::keys
