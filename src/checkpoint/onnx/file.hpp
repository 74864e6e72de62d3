// SPDX-License-Identifier: Apache-2.0
// The content of an ONNX file (onnx.proto, IR version 8, operator set 17), as far as exported models need it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace echelon::inline checkpoint::onnx {

inline constexpr int kOperatorSet = 17;

// Element types, numbered as in TensorProto.DataType.
enum class Element : std::uint8_t { f32 = 1, i8 = 3, i32 = 6, i64 = 7 };

struct Attribute {
  std::string name;
  std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<std::string>> value;
};

struct Operation {
  std::string type;  // "Conv"
  std::string name;
  std::vector<std::string> inputs, outputs;  // names of values; "": an omitted optional input
  std::vector<Attribute> attributes = {};
};

// A value stored in the file.
struct Constant {
  std::string name;
  Element type = Element::f32;
  std::vector<std::int64_t> shape;
  std::string content;  // raw values, little-endian
};

// An input or output of the model.
struct Port {
  static constexpr std::int64_t kBatch = -1;  // extent that the user chooses, "N"
  std::string name;
  Element type = Element::f32;
  std::vector<std::int64_t> shape;
  std::string meaning = {};
};

struct File {
  std::vector<Operation> operations;  // in topological order
  std::vector<Constant> constants;
  std::vector<Port> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Removes operations, constants and inputs on which no output depends.
void remove_unused(File& file);

// Returns the bytes of the file. Constants are released as they are written, so that memory holds hardly more than one
// copy of the weights. Throws ConfigError above 2 GiB, the limit of protocol buffers.
std::string serialise(File file);

}  // namespace echelon::inline checkpoint::onnx
