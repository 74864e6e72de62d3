// A trained model in the formats of other programs. Files appear whole or not at all and are built in memory.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/saved_model.hpp"

namespace echelon::inline checkpoint {

struct Exported {
  std::int64_t tensors = 0;  // of the model; with their scales where these are tensors of the file
  std::uint64_t bytes = 0;   // of the file
};

// Both throw DataError for a checkpoint without weights or of another model, EnvironmentError where `path` cannot be
// written. With `int8` weight matrices are 8-bit numbers (checkpoint/quantise.hpp). Metadata of both: the model's
// config (TOML), its step, this program's version and, as JSON text, TrainedData (mean and std, class names).

// The weights as safetensors, which PyTorch and others read: 8 bytes little-endian length, a JSON header of names,
// dtypes, shapes and offsets padded to a multiple of 8, then the values. Tensors have the names of the checkpoint
// without "weights/" ("conv1.weight"), laid out as PyTorch lays them out. With `int8` a matrix is an I8 tensor, and
// "<name>.scale" its scales in F32.
Exported export_safetensors(const SavedModel& saved, const std::string& path, bool int8 = false);

// The model as an ONNX graph with its weights in f32, from samples to probabilities or values
// (checkpoint/onnx/model.hpp). ConfigError with the file:line of a layer that ONNX has no form of, and above 2 GiB.
Exported export_onnx(const SavedModel& saved, const std::string& path, bool int8 = false);

}  // namespace echelon::inline checkpoint
