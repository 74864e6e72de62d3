// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_table.hpp"

#include <fmt/format.h>

#include "base/check.hpp"
#include "device/row_bits.hpp"

namespace echelon::inline model {

TensorTable::TensorTable(const Graph& graph, std::int64_t batch, DType dtype)
    : graph_(graph),
      batch_(batch),
      dtype_(dtype),
      value_tensor_(graph.values().size(), -1),
      has_views_(graph.values().size(), false),
      gradient_tensor_(graph.values().size(), -1),
      gradient_shared_(graph.values().size(), false) {
  for (std::size_t i = 0; i < graph.values().size(); ++i) root_.push_back(static_cast<ValueId>(i));
}

int TensorTable::add(LoweredTensor tensor) {
  if (tensor.storage < 0) tensor.storage = static_cast<int>(tensors_.size());
  tensors_.push_back(std::move(tensor));
  return static_cast<int>(tensors_.size()) - 1;
}

int TensorTable::fresh(std::string name, const Shape& shape, DType dtype, Layout layout) {
  LoweredTensor tensor{.name = std::move(name), .shape = shape, .dtype = dtype, .layout = layout};
  tensor.bytes = static_cast<std::size_t>(stored_elems(shape, layout)) * size_of(dtype);
  return add(std::move(tensor));
}

void TensorTable::set_layout(int tensor, Layout layout) {
  LoweredTensor& changed = at(tensor);
  ECHELON_CHECK(changed.storage == tensor && changed.first < 0, "the layout of {} is already fixed", changed.name);
  changed.layout = layout;
  changed.bytes = static_cast<std::size_t>(stored_elems(changed.shape, layout)) * size_of(changed.dtype);
}

int TensorTable::bytes_tensor(std::string name, std::size_t bytes) {
  return fresh(std::move(name), Shape{static_cast<std::int64_t>(bytes)}, DType::u8, Layout::plain);
}

int TensorTable::view(int tensor, const Shape& shape) {
  LoweredTensor seen = at(tensor);
  ECHELON_CHECK(seen.layout == Layout::plain, "{} must be plain to be viewed with another shape", seen.name);
  ECHELON_CHECK_EQ(seen.shape.elems(), shape.elems(), "a view of {} must have as many elements", seen.name);
  seen.shape = shape;
  return add(std::move(seen));
}

DType TensorTable::dtype_of_value(ValueId id) const {
  const Value& value = value_of(id);
  if (value.type == ValueType::index) return DType::i32;
  return value.producer < 0 || value.producer == graph_.loss() ? wide_of(dtype_) : dtype_;
}

int TensorTable::value(ValueId id) {
  int& tensor = value_tensor_[static_cast<std::size_t>(id)];
  if (tensor < 0) {
    tensor = fresh(value_of(id).name, shape_of(id), dtype_of_value(id), Layout::plain);
  }
  return tensor;
}

void TensorTable::alias_value(ValueId alias, ValueId origin, int plain) {
  const int seen = view(plain, shape_of(alias));
  at(seen).name = value_of(alias).name;
  value_tensor_[static_cast<std::size_t>(alias)] = seen;
  root_[static_cast<std::size_t>(alias)] = root(origin);
  has_views_[static_cast<std::size_t>(root(origin))] = true;
}

int TensorTable::gradient(ValueId value) const { return gradient_tensor_[static_cast<std::size_t>(root(value))]; }

void TensorTable::set_gradient(ValueId value, int tensor, bool shared) {
  gradient_tensor_[static_cast<std::size_t>(root(value))] = tensor;
  gradient_shared_[static_cast<std::size_t>(root(value))] = shared;
}

bool TensorTable::gradient_shared(ValueId value) const {
  return gradient_shared_[static_cast<std::size_t>(root(value))];
}

bool TensorTable::gradient_plain(ValueId value) const { return has_views_[static_cast<std::size_t>(root(value))]; }

int TensorTable::weight(int parameter) {
  if (const auto found = weights_.find(parameter); found != weights_.end()) return found->second;
  const Parameter& p = graph_.parameters()[parameter];
  return weights_[parameter] = add({.name = p.name,
                                    .shape = p.shape,
                                    .dtype = wide_of(dtype_),
                                    .home = Home::weight,
                                    .parameter = parameter});
}

int TensorTable::parameter_gradient(int parameter) {
  if (const auto found = parameter_gradients_.find(parameter); found != parameter_gradients_.end())
    return found->second;
  const Parameter& p = graph_.parameters()[parameter];
  return parameter_gradients_[parameter] = add({.name = "d " + p.name,
                                                .shape = p.shape,
                                                .dtype = wide_of(dtype_),
                                                .home = Home::gradient,
                                                .parameter = parameter});
}

int TensorTable::row_marks(int parameter) {
  if (const auto found = row_marks_.find(parameter); found != row_marks_.end()) return found->second;
  const Parameter& p = graph_.parameters()[parameter];
  return row_marks_[parameter] = add({.name = "marks of " + p.name,
                                      .shape = Shape{row_words(p.shape[0])},
                                      .dtype = DType::i32,
                                      .home = Home::row_marks,
                                      .parameter = parameter});
}

int TensorTable::kept(int node, std::string_view tag, const Shape& shape, DType dtype) {
  const std::pair<int, std::string> key{node, tag};
  if (const auto found = kept_.find(key); found != kept_.end()) return found->second;
  const std::string& name = graph_.nodes()[static_cast<std::size_t>(node)].name;
  return kept_[key] = fresh(fmt::format("{} {}", name, tag), shape, dtype, Layout::plain);
}

int TensorTable::copy_in(int tensor, Layout layout, DType dtype) const {
  const auto found = copies_.find({tensor, layout, dtype});
  return found == copies_.end() ? -1 : found->second;
}

}  // namespace echelon::inline model
