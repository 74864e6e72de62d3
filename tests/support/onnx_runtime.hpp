// SPDX-License-Identifier: Apache-2.0
// Runs exported models in onnxruntime and compares them with what this program computes. Needs the Python packages
// onnx, whose checker each model must pass, and onnxruntime.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/shape.hpp"
#include "tests/support/process.hpp"

namespace echelon::test {

bool has_onnx_runtime();

struct OnnxValues {
  std::string type;  // "f32" or "i32"
  Shape shape;       // N comes first
  std::vector<double> values;
};

class OnnxCases {
 public:
  // Adds a batch to a case; a case's batches follow one another, and the states that the model returns go into the
  // next. The model gets those of `inputs` that it has.
  void add(const std::string& name, const std::string& file, const std::map<std::string, OnnxValues>& inputs,
           const OnnxValues& outputs);
  // Returns for each name the largest difference over max(1, |largest output|), or 1e9 with the reason on standard
  // error. All models run in one process, which must end well (REQUIRE).
  std::map<std::string, double> run() const;

 private:
  nlohmann::json cases_ = nlohmann::json::object();
};

}  // namespace echelon::test
