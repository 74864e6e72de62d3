// The weights of a trained model in the safetensors format, which PyTorch and others read: 8 bytes little-endian
// length, a JSON header of names, dtypes, shapes and offsets padded to a multiple of 8, then the values.
#pragma once

#include <string>

#include "checkpoint/saved_model.hpp"

namespace echelon::inline checkpoint {

struct Exported {
  std::int64_t tensors = 0;
  std::uint64_t bytes = 0;  // of the file
};

// Tensors have the names of the checkpoint without "weights/" ("conv1.weight"), laid out as PyTorch lays them out;
// the header's __metadata__ holds the model's config (TOML), its step, this program's version and, as JSON text,
// TrainedData (mean and std, class names). The file appears whole or not at all.
// Builds the file in memory. DataError for a checkpoint without weights, EnvironmentError where `path` cannot be
// written.
Exported export_safetensors(const SavedModel& saved, const std::string& path);

}  // namespace echelon::inline checkpoint
