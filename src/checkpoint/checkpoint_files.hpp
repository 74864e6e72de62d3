// The files of a folder of checkpoints: which of them count, which are damaged, which are kept.
//
//   step-00001234.h5      the checkpoint (checkpoint.hpp)
//   step-00001234.json    its manifest, written after it: step, size and checksum64 of the whole file, and of each
//                         dataset as it was in memory
//   latest                the name of the newest good one, written last
//
// A checkpoint is good when its manifest can be read, is of this step and agrees with the file. The whole file is
// compared before HDF5 opens it: a flipped bit in its structure can make the library crash or hang.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace echelon::inline checkpoint {

inline constexpr const char* kCheckpointFormat = "echelon-checkpoint";
inline constexpr std::int64_t kCheckpointVersion = 2;  // of the file and of its manifest

struct CheckpointInfo {
  std::string path;  // of the .h5 file
  std::int64_t step = 0;
};

std::string checkpoint_path(const std::string& folder, std::int64_t step);  // <folder>/step-00001234.h5
std::string manifest_path(const std::string& checkpoint);                   // step-00001234.json beside it

// After the file is in place. `datasets`: a list of {name, dtype, bytes, checksum64}. Reads the file once.
// EnvironmentError where the manifest cannot be written.
void write_manifest(const std::string& checkpoint, std::int64_t step, const nlohmann::ordered_json& datasets);
void set_latest(const std::string& folder, std::int64_t step);

// What is wrong with a checkpoint, "" where it is good. Reads every byte twice: as a file, and as datasets.
std::string damage_of(const std::string& checkpoint);
// DataError that names the file and the damage.
void require_good(const std::string& checkpoint);

// The newest good checkpoint of the folder, if there is one. Damaged ones that are newer are passed over with a
// warning; `passed_over` receives their steps.
std::optional<CheckpointInfo> find_checkpoint(const std::string& folder,
                                              std::vector<std::int64_t>* passed_over = nullptr);
// The same by a glance (manifest and size of the file), without a warning: for messages.
std::optional<CheckpointInfo> glance_at_newest(const std::string& folder);

// Moves the checkpoints of these steps to the folder `to`, and lets `latest` name `good` (none: removes it), so that
// they cannot stand in the way of the ones to come. EnvironmentError where that is not possible.
void set_damaged_aside(const std::string& folder, const std::vector<std::int64_t>& steps, const std::string& to,
                       const std::optional<CheckpointInfo>& good);

// Keeps the newest `keep` whose manifest and size are right; removes the others, files without a manifest, and what a
// killed run left half written. Called with the run's own newest checkpoint as the newest of the folder: later ones
// are set aside when the run resumes.
void prune_checkpoints(const std::string& folder, std::int64_t keep);

}  // namespace echelon::inline checkpoint
