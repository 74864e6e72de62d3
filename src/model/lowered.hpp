// SPDX-License-Identifier: Apache-2.0
// The result of lowering a graph: the ops of one program in the order in which they run, and their tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "model/graph.hpp"
#include "model/lowering.hpp"

namespace echelon::inline model {

// The place of a tensor's memory: the program's activations, an arena, the row marks beside the gradients, or the
// program's states, which keep their content from pass to pass.
enum class Home : std::uint8_t { activation, weight, gradient, row_marks, state };

struct LoweredTensor {
  std::string name;  // "conv1", "d conv1", "conv1 as blocked8", for messages
  Shape shape;       // N in front
  DType dtype = DType::f32;
  Layout layout = Layout::plain;
  Home home = Home::activation;
  int parameter = -1;         // index of the parameter whose weights, gradient or row marks it is
  int storage = -1;           // index of the tensor whose memory it uses: its own, unless it is an alias
  std::size_t bytes = 0;      // size in program memory
  bool zeros = false;         // zero from the start, and no op writes it
  bool persistent = false;    // keeps its content for the whole life of the program
  int first = -1, last = -1;  // index of the first op that writes it and the last that uses it; -1: none
};

struct LoweredOp {
  int node = -1;
  bool backward = false;
  OpSpec spec;
  std::unique_ptr<Op> op;
  std::vector<int> tensors;   // by argument
  unsigned accumulate = 0;    // the accumulate bits of every pass
  unsigned first_writes = 0;  // bits that accumulate only from the second micro-batch of a step on
  int saved = -1;             // tensor that carries data from the forward op to its backward op
  ScaleSource scale = ScaleSource::one;
  int summed = -1;              // tensor that is summed over replicas once the op has run
  int cut = -1;                 // >= 0: not a device op but a transfer of `tensors` = {from, to}; -1 for an absent one
  double count_per_sample = 0;  // > 0: the scalar `count` is this times the samples of the whole step
  double count = 0;             // otherwise the value of `count`; 0: taken from the op's dims
};

struct Lowered {
  std::vector<LoweredTensor> tensors;
  std::vector<LoweredOp> ops;  // forward ones, then backward ones
  int forward_ops = 0;
  std::vector<int> values;          // by ValueId: the tensor that holds it
  std::vector<int> forward_begin;   // by node: its first forward op; one entry more at the end
  std::vector<int> gradients_done;  // by node: op after which the parameters' gradients that it owns are written; -1:
                                    // none
  int loss_sums = -1;               // tensor (3) f64
  std::vector<int> states;          // tensors whose home is `state`
  std::size_t scratch_bytes = 0;
};

struct LowerOptions {
  std::int64_t batch = 1;
  bool training = true;
  bool keep_values = false;            // every value stays readable after a forward pass
  std::vector<std::string> read = {};  // values that stay readable, in plain copies
};

// Lowers every node for this device: forward in order, then (training) backward in reverse. Layouts: for each op the
// device is given the layouts of its inputs and returns the layouts that it prefers (Device::layouts); a reorder is
// inserted where they differ, once for each (tensor, layout). `dtype` is that of activations; if it is a half,
// parameters, graph inputs and losses are f32, and so are ops that the device does not support in halves. The gradient
// of a value with several consumers is written by the first one, and the others add to it. Throws what Device::make
// throws for an op that the device does not support.
Lowered lower(const Graph& graph, Device& device, DType dtype, const LowerOptions& options);

}  // namespace echelon::inline model
