// SPDX-License-Identifier: Apache-2.0
// An ONNX graph under construction: operations with unique names, and constants.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/shape.hpp"
#include "checkpoint/onnx/file.hpp"

namespace echelon::inline checkpoint::onnx {

class Builder {
 public:
  // Returns an unused name: `requested`, or `requested` with a number.
  std::string name(const std::string& requested);
  // Sets the layer after which the following operations are named if they name no output.
  void set_part(std::string name) { part_ = std::move(name); }

  // Appends an operation that writes `outputs`; their names must come from name().
  void write(std::string type, std::vector<std::string> inputs, std::vector<std::string> outputs,
             std::vector<Attribute> attributes = {});
  // Appends an operation with one output and returns the output's name.
  std::string add(const std::string& type, std::vector<std::string> inputs, std::vector<Attribute> attributes = {});

  std::string integers(const std::vector<std::int64_t>& values);              // (n), i64
  std::string integer(std::int64_t value);                                    // (), i64
  std::string indices(std::int64_t first, std::int64_t count);                // (count), i32: first, first + 1, ..
  std::string number(float value);                                            // (), f32
  std::string numbers(const Shape& shape, const std::vector<float>& values);  // f32
  void constant(std::string name, Element type, const Shape& shape, std::string content);

  // Calls `make` at the first call with this key, and returns its value at every call.
  std::string once(const std::string& key, const std::function<std::string()>& make);

  File& file() { return file_; }

 private:
  std::string kept(const std::string& key, Element type, const std::vector<std::int64_t>& shape, std::string content);

  File file_;
  std::string part_;
  std::set<std::string> names_;
  std::map<std::string, std::string> made_;
};

}  // namespace echelon::inline checkpoint::onnx
