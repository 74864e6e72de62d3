// SPDX-License-Identifier: Apache-2.0
// A layer of [[model.layers]].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::inline config {

// One [[model.layers]] entry. config/traits/layers.hpp says which keys a type takes; other keys are errors.
struct LayerConfig {
  // conv | max_pool | avg_pool | global_avg_pool | dense | relu | tanh | sigmoid | gelu | leaky_relu | elu | softplus |
  // scale | conv_transpose | upsample | batch_norm | layer_norm | lrn | dropout | flatten | add | concat | position |
  // attention | sequence_pool | embedding | rnn | lstm | gru
  std::string type;
  std::string name;                          // default: type and number, "conv1"
  std::vector<std::string> inputs;           // default: the preceding layer
  std::int64_t stage = -1;                   // pipeline stage (parallel.pipeline); -1: chosen by cost
  std::int64_t channels = 0;                 // conv: output channels, > 0
  std::int64_t units = 0;                    // dense: output units; embedding: features; rnn, lstm, gru: state size
  std::vector<std::int64_t> kernel;          // conv, pools: one number, or one for each spatial axis
  std::vector<std::int64_t> stride;          // default 1 (conv), the kernel (pools)
  std::vector<std::int64_t> padding;         // default 0
  std::vector<std::int64_t> dilation;        // conv, default 1
  std::vector<std::int64_t> output_padding;  // conv_transpose, default 0
  std::vector<std::int64_t> factor;          // upsample
  std::int64_t groups = 1;                   // conv
  bool bias = true;                          // conv, dense
  bool count_padding = false;                // avg_pool: the divisor includes padding
  double epsilon = 1e-5;                     // batch_norm, layer_norm
  double momentum = 0.1;                     // batch_norm: weight of the newest statistics in the running average
  bool synchronised = false;                 // batch_norm: statistics over all replicas' samples
  bool renorm = false;                       // batch_norm: corrected towards the running statistics (Ioffe 2017)
  double r_max = 3;                          // batch_norm with renorm: correction factor within [1/r_max, r_max]
  double d_max = 5;                          // batch_norm with renorm: correction shift within [-d_max, d_max]
  double rate = 0.5;                         // dropout: fraction that is set to zero, in [0, 1)
  std::int64_t size = 5;                     // lrn: window size in channels, > 0
  double alpha = 0;                          // lrn, 0: 1e-4; elu, 0: 1; scale: the factor
  double slope = 0.01;                       // leaky_relu: factor of negative values, >= 0
  double beta = 0.75;                        // lrn
  double k = 1;                              // lrn, > 0
  std::int64_t heads = 1;                    // attention
  bool causal = false;                       // attention: later positions are masked
  std::string mode = "mean";                 // sequence_pool: sum | mean | last; upsample: nearest | linear
  std::int64_t vocabulary = 0;               // embedding: rows of the table; 0: number of tokens in the data
  bool sparse = false;  // embedding: sparse gradient: only the rows that a step touches are stored, applied and sent
  std::string activation = "tanh";  // rnn: tanh | relu
  bool reverse = false;             // rnn, lstm, gru: runs from the end of the sequence to its beginning
  bool carry = false;      // rnn, lstm, gru: the final states of a batch are the initial states of the next one
  std::string weights_of;  // dense: name of the embedding whose table is its weights; "": its own
  std::string init;        // initial weights: "" as model.init | default | uniform | he | orthogonal
  double init_range = 0;   // init uniform: weights and biases in [-range, range); 0: model.init_range
  std::string where;       // "file:line", for messages; not a key
};

}  // namespace echelon::inline config
