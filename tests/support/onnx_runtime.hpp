// Exported models run by onnxruntime, and compared with what this program computes. Needs the Python packages onnx,
// whose checker each model passes, and onnxruntime.
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
  Shape shape;       // N in front
  std::vector<double> values;
};

class OnnxCases {
 public:
  // Batches of one case follow one another: states that the model gives back are those that the next one begins with.
  // Of `inputs` those that the model has are used.
  void add(const std::string& name, const std::string& file, const std::map<std::string, OnnxValues>& inputs,
           const OnnxValues& outputs);
  // By name: the largest difference over max(1, |largest output|), or 1e9 with the reason on standard error. All models
  // run in one process. REQUIREs that it ends well.
  std::map<std::string, double> run() const;

 private:
  nlohmann::json cases_ = nlohmann::json::object();
};

}  // namespace echelon::test
