// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/onnx/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "checkpoint/onnx/wire.hpp"

namespace echelon::inline checkpoint::onnx {
namespace {

constexpr int kIrVersion = 8;
constexpr std::size_t kMostBytes = std::size_t{1} << 31;

// Field numbers in onnx.proto.
enum Model : int { kIr = 1, kProducer = 2, kProducerVersion = 3, kGraph = 7, kOperatorSets = 8, kMetadata = 14 };
enum Graph : int { kNode = 1, kGraphName = 2, kInitializer = 5, kInput = 11, kOutput = 12 };
enum Node : int { kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kOpType = 4, kAttribute = 5 };
enum AttributeField : int { kAttributeName = 1, kF = 2, kI = 3, kS = 4, kInts = 8, kStrings = 9, kType = 20 };
enum AttributeType : int { kFloat = 1, kInt = 2, kString = 3, kIntList = 7, kStringList = 8 };
enum Tensor : int { kDims = 1, kDataType = 2, kTensorName = 8, kRawData = 9 };
enum ValueInfo : int { kValueName = 1, kValueType = 2, kValueDoc = 3 };
enum Type : int { kTensorType = 1, kElemType = 1, kShape = 2, kDim = 1, kDimValue = 1, kDimParam = 2 };
enum Pair : int { kKey = 1, kValue = 2 };
enum OperatorSet : int { kSetVersion = 2 };

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

Message attribute(const Attribute& from) {
  Message to;
  to.text(kAttributeName, from.name);
  std::visit(Overloaded{[&](std::int64_t value) { to.integer(kI, value).integer(kType, kInt); },
                        [&](float value) { to.number(kF, value).integer(kType, kFloat); },
                        [&](const std::string& value) { to.text(kS, value).integer(kType, kString); },
                        [&](const std::vector<std::int64_t>& values) {
                          for (const std::int64_t value : values) to.integer(kInts, value);
                          to.integer(kType, kIntList);
                        },
                        [&](const std::vector<std::string>& values) {
                          for (const std::string& value : values) to.text(kStrings, value);
                          to.integer(kType, kStringList);
                        }},
             from.value);
  return to;
}

Message node(const Operation& from) {
  Message to;
  for (const std::string& input : from.inputs) to.text(kNodeInput, input);
  for (const std::string& output : from.outputs) to.text(kNodeOutput, output);
  to.text(kNodeName, from.name).text(kOpType, from.type);
  for (const Attribute& each : from.attributes) to.message(kAttribute, attribute(each));
  return to;
}

Message value_info(const Port& from) {
  Message shape;
  for (const std::int64_t extent : from.shape) {
    Message dim;
    if (extent == Port::kBatch)
      dim.text(kDimParam, "N");
    else
      dim.integer(kDimValue, extent);
    shape.message(kDim, dim);
  }
  Message tensor, type, to;
  tensor.integer(kElemType, static_cast<int>(from.type)).message(kShape, shape);
  type.message(kTensorType, tensor);
  to.text(kValueName, from.name).message(kValueType, type);
  if (!from.meaning.empty()) to.text(kValueDoc, from.meaning);
  return to;
}

// A tensor without its content, and the key and length of the content.
Message tensor_head(const Constant& from) {
  Message to;
  for (const std::int64_t extent : from.shape) to.integer(kDims, extent);
  to.integer(kDataType, static_cast<int>(from.type)).text(kTensorName, from.name);
  return to.begin_message(kRawData, from.content.size());
}

Message pair(const std::string& key, const std::string& value) {
  Message to;
  return to.text(kKey, key).text(kValue, value);
}

}  // namespace

void remove_unused(File& file) {
  std::set<std::string> used;
  for (const Port& output : file.outputs) used.insert(output.name);
  std::vector<Operation> kept;
  for (auto op = file.operations.rbegin(); op != file.operations.rend(); ++op) {
    if (std::none_of(op->outputs.begin(), op->outputs.end(),
                     [&](const std::string& name) { return used.contains(name); }))
      continue;
    used.insert(op->inputs.begin(), op->inputs.end());
    kept.push_back(std::move(*op));
  }
  file.operations.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  std::erase_if(file.constants, [&](const Constant& constant) { return !used.contains(constant.name); });
  std::erase_if(file.inputs, [&](const Port& input) { return !used.contains(input.name); });
}

std::string serialise(File file) {
  std::size_t content = 0;
  for (const Constant& constant : file.constants) content += constant.content.size();
  const auto require_room = [](std::size_t bytes) {
    if (bytes >= kMostBytes)
      throw ConfigError(
          fmt::format("an ONNX file of {} could not be read: the format is limited to 2 GiB; safetensors is not",
                      bytes_text(static_cast<double>(bytes))));
  };
  require_room(content);
  Message graph;
  graph.reserve(content + (std::size_t{1} << 20));
  for (const Operation& op : file.operations) graph.message(kNode, node(op));
  graph.text(kGraphName, "echelon");
  for (Constant& constant : file.constants) {
    const Message head = tensor_head(constant);
    graph.begin_message(kInitializer, head.bytes().size() + constant.content.size());
    graph.append(head).append(constant.content);
    constant.content = {};
  }
  for (const Port& input : file.inputs) graph.message(kInput, value_info(input));
  for (const Port& output : file.outputs) graph.message(kOutput, value_info(output));

  Message head, operators;
  operators.integer(kSetVersion, kOperatorSet);  // domain "": ONNX itself
  head.integer(kIr, kIrVersion).text(kProducer, "echelon").text(kProducerVersion, kVersion);
  head.message(kOperatorSets, operators);
  for (const auto& [key, value] : file.metadata) head.message(kMetadata, pair(key, value));
  require_room(head.bytes().size() + graph.bytes().size());
  head.begin_message(kGraph, graph.bytes().size());
  graph.prepend(head);
  return graph.take();
}

}  // namespace echelon::inline checkpoint::onnx
