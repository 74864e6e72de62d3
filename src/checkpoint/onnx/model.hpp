// A model as an ONNX graph that computes what `predict --outputs` writes.
//
//   inputs   "samples" (N, ..) f32, or tokens (N, T) i32; where layers read them "lengths" (N) i32 and "target" (N, U)
//            i32; "<layer>.h" and "<layer>.c" (N, H) of layers with `carry`: the states before the first place
//   outputs  "outputs" (N, ..) f32: probabilities of classes, or the values; "<layer>.h_next", "<layer>.c_next": the
//            states behind the last place, for the next batch
//
// Constants have the names, shapes and layout of the checkpoint. The graph is that of evaluation: running statistics,
// no dropout.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/onnx/file.hpp"
#include "checkpoint/quantise.hpp"
#include "model/graph.hpp"

namespace echelon::inline checkpoint::onnx {

struct Normalisation {
  std::vector<double> mean, std;  // by channel of images (C, H, W), by feature of sequences (T, F); empty: none
};

struct Options {
  Normalisation normalisation = {};
  bool int8 = false;  // weight matrices as quantise_rows has them, each behind a DequantizeLinear
};

// All values of a whole parameter, in f32.
using ReadParameter = std::function<std::vector<float>(const Parameter&)>;

// `graph`: of a whole model, with its loss, as build_model returns it. Samples are normalised by the first operations,
// (value - mean) / std, padded places of sequences being 0 behind that. ConfigError with the layer's file:line where
// ONNX has no form of it.
File make_file(const Graph& graph, const ReadParameter& read, const Options& options = {});

}  // namespace echelon::inline checkpoint::onnx
