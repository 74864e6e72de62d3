// What lowering leaves: the ops of one program in the order they run, and the tensors they name. Plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "model/graph.hpp"
#include "model/lowering.hpp"

namespace echelon::inline model {

// Program memory, one of the arenas, the marks beside its gradients, or the program's states: what is carried from pass
// to pass.
enum class Home : std::uint8_t { activation, weight, gradient, row_marks, state };

struct LoweredTensor {
  std::string name;  // "conv1", "d conv1", "conv1 as blocked8", for messages
  Shape shape;       // N in front
  DType dtype = DType::f32;
  Layout layout = Layout::plain;
  Home home = Home::activation;
  int parameter = -1;         // of the arenas
  int storage = -1;           // index of the tensor whose memory this is; itself unless an alias
  std::size_t bytes = 0;      // of program memory
  bool zeros = false;         // from the start, and no op writes it
  bool persistent = false;    // keeps its content for the whole life of the program
  int first = -1, last = -1;  // ops that write it first and use it last; -1: none
};

struct LoweredOp {
  int node = -1;
  bool backward = false;
  OpSpec spec;
  std::unique_ptr<Op> op;
  std::vector<int> tensors;   // by argument
  unsigned accumulate = 0;    // in every pass
  unsigned first_writes = 0;  // bits that accumulate only from the second micro-batch of a step on
  int saved = -1;             // tensor
  ScaleSource scale = ScaleSource::one;
  int summed = -1;              // tensor that is summed over replicas once the op has run
  int cut = -1;                 // no device op: what `tensors` = {from, to} hold travels; -1 for one that is not there
  double count_per_sample = 0;  // the scalar `count` is this times the samples of the whole step
  double count = 0;             // else this; 0: the op's own
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
  bool keep_values = false;  // every value stays readable after a forward pass
};

// Lowers every node for this device: forward in order, then (training) backward in reverse. Layouts: each op is asked
// what it would like given what its inputs have; a reorder is inserted where that differs, once for each (tensor,
// layout). `dtype` is that of activations: where it is a half, parameters and graph inputs are f32, and so are losses
// and the kinds that the device has not in halves. Gradients of a value with several consumers are written by the
// first, added to by the later ones.
Lowered lower(const Graph& graph, Device& device, DType dtype, const LowerOptions& options);

}  // namespace echelon::inline model
