// SPDX-License-Identifier: Apache-2.0
// Files from which weights are read by name: safetensors files, and checkpoints of runs.
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
  virtual const std::vector<StoredTensor>& tensors() const = 0;  // real-valued ones, by name
  // Reads the whole tensor into `to`, converted to `dtype` (f32 or f64). Throws DataError if the file cannot be read.
  virtual void read(const StoredTensor& tensor, void* to, DType dtype) const = 0;
};

// `location`: a *.safetensors file (F64, F32, F16, BF16; integer tensors are left out), or anything that find_saved
// accepts: a run's folder or a checkpoint, which is verified. Throws ConfigError if nothing is there, EnvironmentError
// if it cannot be read, DataError if the file is damaged or the format's own library would refuse it.
std::unique_ptr<WeightsFile> open_weights(const std::string& location);

}  // namespace echelon::inline checkpoint
