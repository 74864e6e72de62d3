// From config to graph.
#pragma once

#include <string>
#include <vector>

#include "base/sample_form.hpp"
#include "config/schema.hpp"
#include "model/graph.hpp"

namespace echelon::inline model {

// The graph of `model` for samples of this form. Errors name file:line of the layer. Its inputs are "samples",
// "labels", "weights" (of the labels' shape) and, where the data has them, "target" (U) and "lengths" (), where a layer
// wants them, "ids" (); the last node is the loss.
Graph build_model(const ModelConfig& model, const SampleForm& form);

// What follows the last layer. kind: "auto" (softmax over classes, mse of real numbers), "softmax", "mse", "bce".
struct LossOptions {
  std::string kind = "auto";
  double label_smoothing = 0;  // softmax
};

// As above from layers alone: each takes the one before unless it names its `inputs` (earlier layers, "samples" or
// "target").
Graph build_layers(const std::vector<LayerConfig>& layers, const SampleForm& form, const LossOptions& loss = {});

// The table people see: node, kind and attributes, output shape, parameters, FLOPs and activation bytes of one sample.
std::string model_table(const Graph& graph, DType dtype);

struct ModelCosts {
  std::int64_t parameters = 0;  // learned values
  double forward_flops = 0;     // of one sample
  double backward_flops = 0;
  double activation_bytes = 0;  // of one sample: every value once
};
ModelCosts model_costs(const Graph& graph, DType dtype);
// By node: FLOPs of one sample, forward and backward.
std::vector<double> node_flops(const Graph& graph, DType dtype);

}  // namespace echelon::inline model
