// SPDX-License-Identifier: Apache-2.0
// Manifests of checkpoints: the datasets in a file, their offsets and their checksums. They detect accidents, not
// manipulation.
//
//   {"format", "version": 3, "step", "file": {"bytes"}, "structure": {"checksum64"},
//    "datasets": [{"name", "dtype", "bytes", "offset", "checksum64"}, ..]}
//
// If the model is split over several ranks (parts.hpp), it has version 4 and, instead of "datasets", "parts". For each
// part this gives the name of its file and the content of that file's manifest, where each dataset also has its box in
// the whole tensor ("shape", "begins", "of": one number per axis; "folded": StateTensor::folded, if it is not -1).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/tensor_region.hpp"

namespace echelon::inline checkpoint {

inline constexpr const char* kCheckpointFormat = "echelon-checkpoint";
// Versions of the file and of its manifest. Files of version 2, with one checksum over the whole file, are read too.
inline constexpr std::int64_t kCheckpointVersion = 3, kWholeSumVersion = 2, kPartsVersion = 4;

// The place of a dataset's values in the file, and their checksum as they were in memory.
struct SavedValues {
  std::string name;
  std::string dtype;                                  // name_of(DType)
  std::uint64_t offset = 0, bytes = 0, checksum = 0;  // SummedFile::checksum
  TensorRegion region;                                // position in the whole tensor
  int folded = -1;
};

// Returns the manifest of the file at `file`, which may be a temporary name. Reads the bytes outside of dataset values.
nlohmann::ordered_json manifest_of(const std::string& file, std::int64_t step, const std::vector<SavedValues>& values);
// The same for the file of a part, which will be called `name`.
nlohmann::ordered_json part_manifest_of(const std::string& file, const std::string& name,
                                        const std::vector<SavedValues>& values);
// Returns the datasets of a part, without their offsets in its file. Throws json::exception.
std::vector<SavedValues> boxes_in(const nlohmann::ordered_json& part);

// Returns how a file differs from its manifest or that of a part, worded as in damage_of (checkpoint_files.hpp); "" if
// it does not. Reads every byte. Throws json::exception, std::logic_error or DataError for an invalid manifest,
// EnvironmentError for a file that cannot be read.
std::string difference(const std::string& file, const nlohmann::ordered_json& manifest, bool from_disk = false);
// The same, comparing only the size.
std::string difference_in_size(const std::string& file, const nlohmann::ordered_json& manifest);

}  // namespace echelon::inline checkpoint
