// The content of an ONNX file (onnx.proto, IR version 8, operator set 17), as far as exported models need it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace echelon::inline checkpoint::onnx {

inline constexpr int kOperatorSet = 17;

// Element types, numbered as TensorProto.DataType.
enum class Element : std::uint8_t { f32 = 1, i8 = 3, i32 = 6, i64 = 7 };

struct Attribute {
  std::string name;
  std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<std::string>> value;
};

struct Operation {
  std::string type;  // "Conv"
  std::string name;
  std::vector<std::string> inputs, outputs;  // names of values; "": an optional one that is left out
  std::vector<Attribute> attributes = {};
};

// A value that the file holds.
struct Constant {
  std::string name;
  Element type = Element::f32;
  std::vector<std::int64_t> shape;
  std::string content;  // plain, little-endian
};

// An input or output of the model.
struct Port {
  static constexpr std::int64_t kBatch = -1;  // an extent that the user chooses, "N"
  std::string name;
  Element type = Element::f32;
  std::vector<std::int64_t> shape;
  std::string meaning = {};
};

struct File {
  std::vector<Operation> operations;  // each behind those whose outputs it takes
  std::vector<Constant> constants;
  std::vector<Port> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Removes operations, constants and inputs that no output depends on.
void remove_unused(File& file);

// The bytes of the file. Constants are released as they are written, so that hardly more than one copy of the weights
// is in memory. ConfigError above 2 GiB, which no reader of protocol buffers takes.
std::string serialise(File file);

}  // namespace echelon::inline checkpoint::onnx
