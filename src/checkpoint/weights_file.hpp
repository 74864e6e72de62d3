// Files that weights are taken from by name: safetensors files, and checkpoints of runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"

namespace echelon::inline checkpoint {

struct StoredTensor {
  std::string name;  // "conv1.weight"
  Shape shape;
};

class WeightsFile {
 public:
  virtual ~WeightsFile() = default;
  virtual const std::string& path() const = 0;
  virtual const std::vector<StoredTensor>& tensors() const = 0;  // real ones, by name
  // The whole tensor into `to`, converted to `dtype` (f32 or f64). DataError where the file cannot be read.
  virtual void read(const StoredTensor& tensor, void* to, DType dtype) const = 0;
};

// `location`: a *.safetensors file (F64, F32, F16, BF16; tensors of integers are left out), or what find_saved takes: a
// run's folder or a checkpoint, which is verified. Throws ConfigError where nothing is there, EnvironmentError where it
// cannot be read, DataError where the file is damaged or is one that the format's own library refuses.
std::unique_ptr<WeightsFile> open_weights(const std::string& location);

}  // namespace echelon::inline checkpoint
