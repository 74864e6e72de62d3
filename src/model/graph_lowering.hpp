// SPDX-License-Identifier: Apache-2.0
// The lowering of a graph, node by node: the tensors of each layer, the accumulate bits of ops, and where reorders
// are inserted. Used once: construct, `run`.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "model/lowered.hpp"
#include "model/tensor_table.hpp"

namespace echelon::inline model {

class GraphLowering final : public Lowering {
 public:
  GraphLowering(const Graph& graph, Device& device, DType dtype, const LowerOptions& options);
  Lowered run();

  std::int64_t batch() const override { return options_.batch; }
  bool training() const override { return options_.training; }
  DType dtype() const override { return node_ == graph_.loss() ? wide_of(dtype_) : dtype_; }
  bool travels_beside_ops() const override { return !device_.on_host() || !device_.computes(); }
  int inputs() const override { return static_cast<int>(node().inputs.size()); }
  Shape input_shape(int i) const override { return table_.shape_of(input_value(i)); }
  Shape output_shape(int i) const override { return table_.shape_of(output_value(i)); }
  TensorRef input(int i) override;
  TensorRef output(int i) override;
  bool wants_grad_input(int i) const override;
  TensorRef grad_input(int i) override;
  TensorRef grad_output(int i) override;
  std::vector<TensorRef> grad_output_terms(int i) override;
  bool has_grad_output(int i) const override { return table_.gradient(output_value(i)) >= 0; }
  TensorRef parameter(int j) override;
  TensorRef grad_parameter(int j) override;
  bool frozen(int j) const override { return graph_.parameters()[parameter_index(j)].frozen; }
  TensorRef row_marks(int j) override;
  TensorRef kept(std::string_view tag, const Shape& shape, DType dtype) override;
  TensorRef state(std::string_view tag, const Shape& shape) override;
  void alias(int output, int input) override;
  void share(int output, int input) override { table_.share_value(output_value(output), input_value(input)); }
  void pass_gradient(int output, int input) override;
  void give_gradient(int input, TensorRef tensor, bool shared) override;
  TensorRef zeros(std::string_view tag, const Shape& shape, bool wide) override;
  void op(const OpSpec& spec, const std::vector<TensorRef>& args, ScaleSource scale, int pair) override;
  void sum_over_replicas(TensorRef tensor) override;
  void count_cells(std::int64_t per_sample) override { cells_[node_] = per_sample; }
  void transfer(int cut, TensorRef from, TensorRef to, bool wide) override;

 private:
  const Node& node() const { return graph_.nodes()[static_cast<std::size_t>(node_)]; }
  int parameter_index(int j) const { return node().parameters[static_cast<std::size_t>(j)]; }
  ValueId input_value(int i) const { return node().inputs[static_cast<std::size_t>(i)]; }
  ValueId output_value(int i) const { return node().outputs[static_cast<std::size_t>(i)]; }

  // A tensor for a frozen parameter, which nothing reads.
  TensorRef unread(std::string_view what, int j, const Shape& shape, DType dtype);
  bool writes_unread_alone(const std::vector<ArgInfo>& infos, const std::vector<TensorRef>& args) const;

  void lower_forward();
  void lower_backward();

  // Defined in readable.cpp.
  bool is_read(ValueId value) const;
  void copy_read();
  void keep_readable();
  int readable(ValueId value);

  int seen_as(int tensor, const Shape& shape);

  // Defined in layouts.cpp.
  void choose_layouts(OpSpec& spec, const std::vector<ArgInfo>& infos, std::vector<int>& args);
  Layout presented(int tensor) const;
  int in_form(int tensor, Layout layout, DType dtype);
  int in_layout(int tensor, Layout layout) { return in_form(tensor, layout, table_.at(tensor).dtype); }
  void emit_reorder(int from, int to);
  int detour(int target, Layout layout, DType dtype);
  void finish_detours();
  Layout used_layout(int input) const;
  void note_used(int tensor, Layout layout);

  // Appends an op whose tensors already have the layouts of the spec.
  void emit(const OpSpec& spec, const std::vector<ArgInfo>& infos, std::vector<int> args, ScaleSource scale, int pair);
  int saved_memory(const Op& op, int pair);
  void share_weights(Op& op, const OpSpec& spec);
  int written_whole(int tensor);
  // a + b as a new tensor in a's layout.
  int sum(int a, int b);
  int gradient(ValueId value);
  void add_to_gradient(ValueId value, int partial);
  void add_last_term();

  const Graph& graph_;
  Device& device_;
  DType dtype_;
  LowerOptions options_;
  TensorTable table_;
  Lowered lowered_;

  int node_ = 0;
  bool backward_ = false;
  std::set<int> unread_;                           // gradients of frozen parameters
  std::set<int> fixed_plain_;                      // gradients that views with another shape write or read
  std::map<int, Layout> present_;                  // for this node: the layout offered to the device for a tensor
  std::vector<std::pair<ValueId, int>> partials_;  // for this node: to be added to a value's gradient once it is done
  std::pair<ValueId, int> last_term_{-1, -1};      // to be added to the gradient of the next node's output; -1: none
  std::vector<std::pair<int, int>> detours_;       // for this op: (memory, tensor that is written instead)
  std::map<int, ValueId> gradient_of_;             // tensors that grad_input returned
  std::set<int> synchronised_;                     // nodes that sum over replicas
  std::map<int, std::int64_t> cells_;              // by node for which count_cells was called
  std::map<std::pair<int, int>, int> saved_;       // (node, pair) -> tensor
  std::map<std::pair<int, OpKind>, Op*> packers_;  // (owner, kind) -> the op of its first chunk that was lowered
  std::map<std::pair<int, int>, Layout> used_;     // (node, input) -> the layout that its forward op read
};

}  // namespace echelon::inline model
