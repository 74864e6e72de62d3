// What a layer writes its ops into: the tensors of one node in one program, and a way to append ops.
//
// Gradients: grad_output(i) is complete when `backward` is called (all consumers have written it). grad_input(i) and
// grad_parameter(j) may be shared with other consumers or earlier micro-batches; the lowering sets each op's accumulate
// bits itself (first writer overwrites, later ones add; parameters add from the second micro-batch on), so a layer just
// writes.
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

// Which run-time scalars an op takes.
enum class ScaleSource : std::uint8_t { one, loss_scale, group_weight };

class Lowering {
 public:
  virtual ~Lowering() = default;

  virtual std::int64_t batch() const = 0;  // N
  virtual bool training() const = 0;
  virtual DType dtype() const = 0;
  // Whether tensors travel while ops run: the device works by itself, not on the host's cores.
  virtual bool travels_beside_ops() const = 0;

  virtual int inputs() const = 0;              // of the node
  virtual Shape input_shape(int i) const = 0;  // with N in front
  virtual Shape output_shape(int i) const = 0;
  virtual TensorRef input(int i) = 0;
  virtual TensorRef output(int i) = 0;
  virtual bool wants_grad_input(int i) const = 0;  // false for the model's own inputs
  // Where no gradient is wanted: a tensor that is not read.
  virtual TensorRef grad_input(int i) = 0;
  virtual TensorRef grad_output(int i) = 0;
  virtual bool has_grad_output(int i) const = 0;  // false where nothing that learns takes this output
  virtual TensorRef parameter(int j) = 0;
  virtual TensorRef grad_parameter(int j) = 0;
  // The marks of the rows of grad_parameter(j), where the parameter is sparse.
  virtual TensorRef row_marks(int j) = 0;
  // A tensor of this node that lives from forward to backward (batch statistics); the same `tag` names the same tensor.
  virtual TensorRef kept(std::string_view tag, const Shape& shape, DType dtype) = 0;
  // A tensor of this node that keeps its content from pass to pass, zero at first (Program::visit_state).
  virtual TensorRef state(std::string_view tag, const Shape& shape) = 0;
  // Makes output(i) the same memory as input(j) seen with another shape (flatten); gradients likewise. A reorder is
  // inserted where the input is not plain.
  virtual void alias(int output, int input) = 0;
  // Makes output(i) the very tensor of input(j); gradients stay apart.
  virtual void share(int output, int input) = 0;
  // grad_input(input) receives grad_output(output) as it is (add); a copy is made only where one is needed.
  virtual void pass_gradient(int output, int input) = 0;
  // grad_input(input) receives this tensor, of which there is no other use.
  virtual void give_gradient(int input, TensorRef tensor) = 0;

  // Appends an op to the pass being lowered. `args` in the order of the spec's signature. A backward op that reads its
  // forward twin's `saved` memory names the same `pair` (0, 1, ..) inside the node.
  virtual void op(const OpSpec& spec, const std::vector<TensorRef>& args, ScaleSource scale = ScaleSource::one,
                  int pair = -1) = 0;
  // A tensor of this node that holds zeros and that no op writes.
  virtual TensorRef zeros(std::string_view tag, const Shape& shape) = 0;
  // What the op before wrote into `tensor` (f64) becomes the sum over all replicas before the next op runs; from here
  // on the node's ops that take a `count` count the samples of all replicas.
  virtual void sum_over_replicas(TensorRef tensor) = 0;
  // From here on the node's ops that take a `count` count so many cells of each sample, not those that are here.
  virtual void count_cells(std::int64_t per_sample) = 0;
  // Before the next op runs, the program's caller is shown `from`, to send it on, and `to`, to fill it, both plain; one
  // of them may be nothing (an id of -1). `cut` is the caller's name for what travels (model/splits/cut.hpp). `wide`:
  // what is to be added is shown in f32 where it is in halves.
  virtual void transfer(int cut, TensorRef from, TensorRef to, bool wide = false) = 0;
};

}  // namespace echelon::inline model
