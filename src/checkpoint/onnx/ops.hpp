// SPDX-License-Identifier: Apache-2.0
// Writes device ops as ONNX operations. A layer is exported through the ops that it lowers to, so a new layer of known
// ops needs nothing here; a new family of ops needs an overload of `write_form`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/onnx/builder.hpp"
#include "device/op_spec.hpp"

namespace echelon::inline checkpoint::onnx {

// A tensor of a layer: its value in the ONNX graph, and its shape with a batch of 1.
struct Operand {
  std::string value;
  Shape shape;
};

// The arguments of one op, by their names in its header (device/ops/).
class Arguments {
 public:
  // `operands`: in the order of the op's signature.
  Arguments(const OpSpec& spec, std::vector<Operand*> operands)
      : infos_(signature(spec)), operands_(std::move(operands)) {}
  // Returns the value of an argument; "" if the op has no such argument.
  std::string operator[](std::string_view name) const;
  int rank(std::string_view name) const { return find(name).shape.rank(); }
  Shape shape(std::string_view name) const { return find(name).shape; }
  // For arguments whose axes the op's header folds but the ONNX value keeps separate.
  void set_shape(std::string_view name, const Shape& shape) { find(name).shape = shape; }

 private:
  Operand& find(std::string_view name) const;

  std::vector<ArgInfo> infos_;
  std::vector<Operand*> operands_;
};

// Appends operations that compute the outputs of an op of evaluation. Throws ConfigError if ONNX cannot express it.
void write_op(Builder& to, const OpSpec& spec, Arguments args);

// sequences.cpp
void write_form(Builder& to, const RnnDims& dims, const Arguments& args);
void write_form(Builder& to, const AttentionDims& dims, const Arguments& args);
void write_form(Builder& to, const SequencePoolDims& dims, const Arguments& args);

// Returns booleans (N, T): whether position t is below the sample's length; `lengths` is (N), i32.
std::string positions_in_use(Builder& to, const std::string& lengths, std::int64_t positions);

}  // namespace echelon::inline checkpoint::onnx
