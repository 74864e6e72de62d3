// The files of a folder of checkpoints: which are good, which are damaged, which are kept. All functions work on files
// alone; those that write are called by one rank, which holds the lock of the run.
//
//   step-00001234.h5      the checkpoint (checkpoint.hpp)
//   step-00001234.json    its manifest, written after it: step, size and checksum64 of the whole file, and of each
//                         dataset as it was in memory
//   latest                the name of the newest good one, written last
//
// A checkpoint is good when its manifest can be read, is of this step and agrees with the file. The whole file is
// compared before HDF5 opens it: a flipped bit in its structure can make the library crash or hang. The
// checksums detect accidents, not manipulation.
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

// Called after the file was renamed into place. `datasets`: a list of {name, dtype, bytes, checksum64}. Reads the file
// once, for its checksum. EnvironmentError where the manifest cannot be written.
void write_manifest(const std::string& checkpoint, std::int64_t step, const nlohmann::ordered_json& datasets);
// Rewrites `latest` for readers outside; find_checkpoint does not use it. EnvironmentError.
void set_latest(const std::string& folder, std::int64_t step);

// Description of the damage of a checkpoint, "" where it is good; never throws an Error. Reads every byte twice: as a
// file, and as datasets.
std::string damage_of(const std::string& checkpoint);
// Throws DataError with the file and damage_of it, unless that is "".
void require_good(const std::string& checkpoint);

// The newest good checkpoint of the folder, if there is one. Damaged ones that are newer are passed over with a
// warning each; `passed_over` receives their steps. Verifies from the newest until one is good.
std::optional<CheckpointInfo> find_checkpoint(const std::string& folder,
                                              std::vector<std::int64_t>* passed_over = nullptr);
// The same by manifest and file size alone, without a warning: for messages, and before the lock is held.
std::optional<CheckpointInfo> glance_at_newest(const std::string& folder);

// Moves the checkpoints of these steps to the folder `to` (created), and sets `latest` to `good` (none: removes it), so
// that new checkpoints of the same steps do not collide with them. EnvironmentError where that is not possible.
void set_damaged_aside(const std::string& folder, const std::vector<std::int64_t>& steps, const std::string& to,
                       const std::optional<CheckpointInfo>& good);

// Keeps the newest `keep` whose manifest and size are right; removes the others, files without a manifest, and
// incomplete files of a killed run, manifests first. Errors are ignored. Called when the newest checkpoint of the
// folder is the run's own newest: later ones are set aside when a run resumes.
void prune_checkpoints(const std::string& folder, std::int64_t keep);

}  // namespace echelon::inline checkpoint
