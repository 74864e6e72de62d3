// SPDX-License-Identifier: Apache-2.0
// The values of a program that can be read after a pass.
#include <algorithm>

#include "model/graph_lowering.hpp"

namespace echelon::inline model {

bool GraphLowering::is_read(ValueId value) const {
  const std::string& name = graph_.values()[static_cast<std::size_t>(value)].name;
  return std::find(options_.read.begin(), options_.read.end(), name) != options_.read.end();
}

// Appends the reorders that make plain copies of values that are read; they belong to the last node.
void GraphLowering::copy_read() {
  --node_;
  for (std::size_t id = 0; id < graph_.values().size(); ++id)
    if (is_read(static_cast<ValueId>(id)))
      in_form(table_.value(static_cast<ValueId>(id)), Layout::plain, wide_of(dtype_));
}

// Graph inputs and the input of the loss keep their content during the whole pass; with keep_values every value does.
void GraphLowering::keep_readable() {
  const std::vector<ValueId> none;
  const std::vector<ValueId>& read =
      graph_.loss() < 0 ? none : graph_.nodes()[static_cast<std::size_t>(graph_.loss())].inputs;
  for (std::size_t id = 0; id < graph_.values().size(); ++id) {
    const ValueId value = static_cast<ValueId>(id);
    const bool read_by_loss = std::find(read.begin(), read.end(), value) != read.end();
    if (options_.keep_values || is_read(value) || read_by_loss || graph_.values()[id].producer < 0)
      table_.storage(readable(value)).persistent = true;
  }
}

// The tensor that Program::value returns: the plain f32 copy that the loss reads if the value has another form.
int GraphLowering::readable(ValueId value) {
  const int tensor = table_.value(value);
  const int wide = table_.copy_in(tensor, Layout::plain, wide_of(dtype_));
  const bool other = is_half(table_.at(tensor).dtype) || table_.at(tensor).layout != Layout::plain;
  return other && wide >= 0 ? wide : tensor;
}

}  // namespace echelon::inline model
