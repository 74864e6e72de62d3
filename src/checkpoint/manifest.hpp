// Manifests of checkpoints: what a file holds, where, and with which checksums. They detect accidents, not
// manipulation.
//
//   {"format", "version": 3, "step", "file": {"bytes"}, "structure": {"checksum64"},
//    "datasets": [{"name", "dtype", "bytes", "offset", "checksum64"}, ..]}
//
// Where the model lies on several ranks (parts.hpp) it has version 4, no datasets, and "parts": for each part the name
// of its file and what a manifest has of one, each dataset with the box of the whole tensor that it is ("shape",
// "begins", "of": one number an axis; "folded": StateTensor::folded, where it is not -1).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/tensor_region.hpp"

namespace echelon::inline checkpoint {

inline constexpr const char* kCheckpointFormat = "echelon-checkpoint";
// Of the file and of its manifest. Files of version 2, which have one checksum over the whole file, are read too.
inline constexpr std::int64_t kCheckpointVersion = 3, kWholeSumVersion = 2, kPartsVersion = 4;

// A dataset's values in the file, as they were in memory.
struct SavedValues {
  std::string name;
  std::string dtype;                                  // name_of(DType)
  std::uint64_t offset = 0, bytes = 0, checksum = 0;  // checksum_in_blocks
  TensorRegion region;                                // of the whole tensor
  int folded = -1;
};

// The manifest of a file that lies at `file`, maybe under a temporary name. Reads what is no value of a dataset.
nlohmann::ordered_json manifest_of(const std::string& file, std::int64_t step, const std::vector<SavedValues>& values);
// The same of the file of a part, which is to be called `name`.
nlohmann::ordered_json part_manifest_of(const std::string& file, const std::string& name,
                                        const std::vector<SavedValues>& values);
// The datasets of a part, without their places in its file. Throws json::exception.
std::vector<SavedValues> boxes_in(const nlohmann::ordered_json& part);

// Where a file differs from its manifest or that of a part: texts as of damage_of (checkpoint_files.hpp); "" where it
// does not. Reads every byte. Throws json::exception, std::logic_error, DataError for what is no manifest,
// EnvironmentError for a file that cannot be read.
std::string difference(const std::string& file, const nlohmann::ordered_json& manifest, bool from_disk = false);
// By its size alone, likewise.
std::string difference_in_size(const std::string& file, const nlohmann::ordered_json& manifest);

}  // namespace echelon::inline checkpoint
