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
  // A name that nothing has yet: `wanted`, or that with a number.
  std::string name(const std::string& wanted);
  // What the operations that follow are named after, where they name no output: a layer.
  void set_part(std::string name) { part_ = std::move(name); }

  // Appends an operation that writes `outputs`, names that name() gave.
  void write(std::string type, std::vector<std::string> inputs, std::vector<std::string> outputs,
             std::vector<Attribute> attributes = {});
  // Appends an operation with one output; returns that.
  std::string add(const std::string& type, std::vector<std::string> inputs, std::vector<Attribute> attributes = {});

  std::string integers(const std::vector<std::int64_t>& values);              // (n), i64
  std::string integer(std::int64_t value);                                    // (), i64
  std::string places(std::int64_t first, std::int64_t count);                 // (count), i32: first, first + 1, ..
  std::string number(float value);                                            // (), f32
  std::string numbers(const Shape& shape, const std::vector<float>& values);  // f32
  void constant(std::string name, Element type, const Shape& shape, std::string content);

  // The value that `make` returned when it was called first with this key.
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
