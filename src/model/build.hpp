// SPDX-License-Identifier: Apache-2.0
// Builds graphs from configurations.
#pragma once

#include <string>
#include <vector>

#include "base/sample_form.hpp"
#include "config/schema.hpp"
#include "model/graph.hpp"

namespace echelon::inline model {

// Returns the graph of `model` for samples of this form, with the inputs that Graph::input lists; the last node is the
// loss. ConfigError with the layer's file:line if layers do not fit the samples or each other, or if model.freeze
// matches nothing or everything.
Graph build_model(const ModelConfig& model, const SampleForm& form);

// The loss behind the last layer. kind: a word of model.loss; "auto": softmax for classes, mse for real numbers.
struct LossOptions {
  std::string kind = "auto";
  double label_smoothing = 0;  // softmax
  double focal_gamma = 2;      // focal
};

// Returns the graph of these layers: each takes the output of the layer before it unless it names its `inputs` (earlier
// layers, "samples" or "target"). `freeze` has the patterns of Graph::freeze.
Graph build_layers(const std::vector<LayerConfig>& layers, const SampleForm& form, const LossOptions& loss = {},
                   const std::vector<std::string>& freeze = {});

// The table of `echelon check`: node, kind and attributes, output shape, parameters, forward FLOPs and activation bytes
// of one sample.
std::string model_table(const Graph& graph, DType dtype);

// Returns "conv1, bn1: 1,234 of 61,706 parameters"; "" if none is frozen.
std::string frozen_text(const ParameterSet& parameters);

struct ModelCosts {
  std::int64_t parameters = 0;  // learned values, without statistics
  double forward_flops = 0;     // per sample; a multiply-add is 2 FLOPs
  double backward_flops = 0;    // per sample
  double activation_bytes = 0;  // per sample: the sum over all values, without sharing of memory
};
// Counted from the specs of the ops (device/op_spec.hpp) without a device; `dtype` is that of activations.
ModelCosts model_costs(const Graph& graph, DType dtype);
// Returns the forward and backward FLOPs of one sample, by node of the graph.
std::vector<double> node_flops(const Graph& graph, DType dtype);

}  // namespace echelon::inline model
