// A trained model's weights in the safetensors format, which other programs read: eight bytes of length, a JSON header
// of names, types, shapes and places, then the values.
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
Exported export_safetensors(const SavedModel& saved, const std::string& path);

}  // namespace echelon::inline checkpoint
