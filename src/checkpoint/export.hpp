// SPDX-License-Identifier: Apache-2.0
// Exports a trained model to formats of other programs. Files appear whole or not at all and are built in memory.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/saved_model.hpp"

namespace echelon::inline checkpoint {

struct Exported {
  std::int64_t tensors = 0;  // tensors of the model; if their scales are tensors of the file, those too
  std::uint64_t bytes = 0;   // size of the file
};

// Both throw DataError for a checkpoint without weights or of another model, and EnvironmentError if `path` cannot be
// written. With `int8`, weight matrices become 8-bit numbers (checkpoint/quantise.hpp). Both write as metadata the
// model's config (TOML), its step, this program's version and, as JSON text, TrainedData (mean and std, class names).

// Exports the weights as safetensors, which PyTorch and others read: an 8-byte little-endian length, a JSON header of
// names, dtypes, shapes and offsets padded to a multiple of 8, then the values. Tensors have the names of the
// checkpoint without "weights/" ("conv1.weight") and PyTorch's layout. With `int8` a matrix is an I8 tensor, and
// "<name>.scale" holds its scales in F32.
Exported export_safetensors(const SavedModel& saved, const std::string& path, bool int8 = false);

// Exports the model as an ONNX graph with f32 weights, from samples to probabilities or values (onnx/model.hpp). Throws
// ConfigError above 2 GiB and, with file:line, for a layer that ONNX cannot express.
Exported export_onnx(const SavedModel& saved, const std::string& path, bool int8 = false);

}  // namespace echelon::inline checkpoint
