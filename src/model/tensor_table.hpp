// SPDX-License-Identifier: Apache-2.0
// The tensors of a program under construction: values, their copies in other layouts, gradients, and kept tensors.
// Returned ints are indices of tensors (LoweredTensor); -1: none.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/lowered.hpp"

namespace echelon::inline model {

class TensorTable {
 public:
  // `dtype` is that of activations; graph inputs, the loss's output and parameters are wide (wide_of).
  TensorTable(const Graph& graph, std::int64_t batch, DType dtype);

  DType dtype_of_value(ValueId value) const;
  Shape shape_of(ValueId value) const { return value_of(value).shape.prepended(batch_); }
  // The tensor of a value; created at the first call, plain.
  int value(ValueId value);
  // Makes `alias` the same memory as the plain tensor `plain` of `origin`; gradients of both become one.
  void alias_value(ValueId alias, ValueId origin, int plain);

  // Makes `other` the tensor of `origin`; their gradients remain two tensors.
  void share_value(ValueId other, ValueId origin) { value_tensor_[static_cast<std::size_t>(other)] = value(origin); }

  // The gradient of a value; -1 before its first writer is lowered.
  int gradient(ValueId value) const;
  void set_gradient(ValueId value, int tensor, bool shared);
  // Whether writing to the gradient's tensor would also change another value's gradient.
  bool gradient_shared(ValueId value) const;
  // Whether the gradient must be plain because views with another shape write and read it.
  bool gradient_plain(ValueId value) const;
  int view(int tensor, const Shape& shape);

  int weight(int parameter);
  int parameter_gradient(int parameter);
  int row_marks(int parameter);
  int kept(int node, std::string_view tag, const Shape& shape, DType dtype);
  int fresh(std::string name, const Shape& shape, DType dtype, Layout layout);
  // May be called only before an op writes the tensor.
  void set_layout(int tensor, Layout layout);
  int bytes_tensor(std::string name, std::size_t bytes);

  // A copy of `tensor` in `layout` and `dtype` made earlier, or -1.
  int copy_in(int tensor, Layout layout, DType dtype) const;
  void remember_copy(int tensor, Layout layout, DType dtype, int copy) { copies_[{tensor, layout, dtype}] = copy; }

  LoweredTensor& at(int tensor) { return tensors_[static_cast<std::size_t>(tensor)]; }
  const LoweredTensor& at(int tensor) const { return tensors_[static_cast<std::size_t>(tensor)]; }
  LoweredTensor& storage(int tensor) { return at(at(tensor).storage); }
  std::vector<LoweredTensor> take() { return std::move(tensors_); }
  const std::vector<int>& values() const { return value_tensor_; }

 private:
  const Value& value_of(ValueId value) const { return graph_.values()[static_cast<std::size_t>(value)]; }
  ValueId root(ValueId value) const { return root_[static_cast<std::size_t>(value)]; }
  int add(LoweredTensor tensor);

  const Graph& graph_;
  std::int64_t batch_;
  DType dtype_;
  std::vector<LoweredTensor> tensors_;
  std::vector<int> value_tensor_;      // by value
  std::vector<ValueId> root_;          // by value: the value whose gradient it shares
  std::vector<bool> has_views_;        // by root
  std::vector<int> gradient_tensor_;   // by root
  std::vector<bool> gradient_shared_;  // by root
  std::map<int, int> weights_, parameter_gradients_, row_marks_;
  std::map<std::pair<int, std::string>, int> kept_;
  std::map<std::tuple<int, Layout, DType>, int> copies_;
};

}  // namespace echelon::inline model
