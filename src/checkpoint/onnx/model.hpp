// SPDX-License-Identifier: Apache-2.0
// Builds an ONNX graph of a model that computes the same as `predict --outputs`.
//
//   inputs   "samples" (N, ..) f32, or tokens (N, T) i32; where layers read them "lengths" (N) i32 and "target" (N, U)
//            i32; "<layer>.h" and "<layer>.c" (N, H) of layers with `carry`: the states before the first position
//   outputs  "outputs" (N, ..) f32: probabilities of classes, or the values; "<layer>.h_next", "<layer>.c_next": the
//            states behind the last position, for the next batch
//
// Constants have the names, shapes and layout of the checkpoint. The graph is that of evaluation, with running
// statistics and no dropout.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/onnx/file.hpp"
#include "checkpoint/quantise.hpp"
#include "model/graph.hpp"

namespace echelon::inline checkpoint::onnx {

struct Normalisation {
  std::vector<double> mean, std;  // by channel for images (C, H, W), by feature for sequences (T, F); empty: none
};

struct Options {
  Normalisation normalisation = {};
  bool int8 = false;  // weight matrices as from quantise_rows, each followed by a DequantizeLinear
};

// Returns all values of a whole parameter in f32.
using ReadParameter = std::function<std::vector<float>(const Parameter&)>;

// `graph`: a whole model with its loss, as build_model returns it. The first operations normalise samples, (value -
// mean) / std, and set padded positions of sequences to 0. Throws ConfigError with the layer's file:line if ONNX cannot
// express it.
File make_file(const Graph& graph, const ReadParameter& read, const Options& options = {});

}  // namespace echelon::inline checkpoint::onnx
