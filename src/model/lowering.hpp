// SPDX-License-Identifier: Apache-2.0
// The interface by which a layer lowers itself to device ops: the tensors of one node in one program, and `op`, which
// appends an op to the pass. Called once while a program is built; nothing runs here. All shapes have N in front.
//
// Gradients: grad_output(i) is complete when Layer::backward is called (all consumers have written it). grad_input(i)
// and grad_parameter(j) may be shared with other consumers or earlier micro-batches; the lowering sets each op's
// accumulate bits (the first writer overwrites, later ones add; parameters add from the second micro-batch on), so a
// layer's ops write as if they were alone.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"
#include "device/op_spec.hpp"

namespace echelon::inline model {

// A tensor of the program under construction; an index.
struct TensorRef {
  int id = -1;
};

// The scalar of a pass (PassScalars, program.hpp) that an op multiplies its result by; one: none.
enum class ScaleSource : std::uint8_t { one, loss_scale, group_weight };

class Lowering {
 public:
  virtual ~Lowering() = default;

  virtual std::int64_t batch() const = 0;  // N, the samples of one micro-batch
  virtual bool training() const = 0;
  virtual DType dtype() const = 0;  // dtype of the node's activations; that of a loss is f32 if others are halves
  // Whether transfers between ranks overlap with the ops that follow: true on devices that do not compute on the host's
  // cores.
  virtual bool travels_beside_ops() const = 0;

  virtual int inputs() const = 0;  // "lengths" and "ids" included
  virtual Shape input_shape(int i) const = 0;
  virtual Shape output_shape(int i) const = 0;
  virtual TensorRef input(int i) = 0;
  virtual TensorRef output(int i) = 0;
  // Whether the gradient of this input is used: false for the model's inputs and for values that depend on no
  // parameter.
  virtual bool wants_grad_input(int i) const = 0;
  virtual TensorRef grad_input(int i) = 0;  // a scratch tensor if wants_grad_input is false
  virtual TensorRef grad_output(int i) = 0;
  // Tensors whose sum is grad_output(i): only that tensor, or two that have not been added, for a layer that adds them
  // in its own pass. Called once, instead of grad_output(i).
  virtual std::vector<TensorRef> grad_output_terms(int i) { return {grad_output(i)}; }
  virtual bool has_grad_output(int i) const = 0;  // false if no reader of this output has a gradient for it
  virtual TensorRef parameter(int j) = 0;         // in the order of Layer::parameters; plain, f32 or f64
  virtual TensorRef grad_parameter(int j) = 0;    // for a frozen parameter a tensor that nothing reads
  virtual bool frozen(int j) const = 0;           // parameter j is not trained
  // Returns the bits of the rows of grad_parameter(j) that were written, for a sparse parameter
  // (ParameterDecl::sparse).
  virtual TensorRef row_marks(int j) = 0;
  // A tensor of this node that is kept from forward to backward (batch statistics), one for each `tag`.
  virtual TensorRef kept(std::string_view tag, const Shape& shape, DType dtype) = 0;
  // A tensor of this node, one for each `tag`, that keeps its content from pass to pass and is zero at first
  // (Program::visit_state).
  virtual TensorRef state(std::string_view tag, const Shape& shape) = 0;
  // Makes output(output) the memory of input(input) with another shape of as many elements (flatten), and their
  // gradients one tensor. A reorder is inserted if the input is not plain.
  virtual void alias(int output, int input) = 0;
  // Makes output(output) the tensor of input(input); their gradients remain two tensors.
  virtual void share(int output, int input) = 0;
  // Adds grad_output(output) to grad_input(input) (the backward pass of add); copies only where necessary.
  virtual void pass_gradient(int output, int input) = 0;
  // Adds `tensor` to grad_input(input). `tensor` must not be used otherwise afterwards, except, if `shared`, to be
  // given to other inputs.
  virtual void give_gradient(int input, TensorRef tensor, bool shared = false) = 0;

  // Appends an op to the pass, or nothing if it writes only gradients of frozen parameters. `args` are in the order of
  // the spec's signature (device/op_spec.hpp). A forward op and the backward op that reads its `saved` memory have the
  // same `pair` (0, 1, .. inside the node); -1: no such memory.
  virtual void op(const OpSpec& spec, const std::vector<TensorRef>& args, ScaleSource scale = ScaleSource::one,
                  int pair = -1) = 0;
  // A tensor of this node, one for each `tag`, that holds zeros; no op may write it. `wide`: in the dtype of
  // parameters, else of activations.
  virtual TensorRef zeros(std::string_view tag, const Shape& shape, bool wide = false) = 0;
  // Replaces `tensor` (f64), which the last op wrote, by its sum over all replicas before the next op runs
  // (Program::set_sum_over_replicas). Later ops of the node that divide by a number of samples (`count`) then use that
  // of all replicas.
  virtual void sum_over_replicas(TensorRef tensor) = 0;
  // Later ops of the node that divide by a number of cells (`count`) use this number per sample, because other ranks
  // hold the other rows of its images.
  virtual void count_cells(std::int64_t per_sample) = 0;
  // Before the next op runs, the callback of Program::set_transfer sends `from` and fills `to`; both are plain, and one
  // of them may be absent (id -1). `cut`: number of the cut (model/splits/cut.hpp). `wide`: the callback gets halves as
  // f32, because they are to be summed.
  virtual void transfer(int cut, TensorRef from, TensorRef to, bool wide = false) = 0;
};

}  // namespace echelon::inline model
