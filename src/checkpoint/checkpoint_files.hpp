// SPDX-License-Identifier: Apache-2.0
// The files in a folder of checkpoints: which are good, which are damaged, and which are kept. All functions work only
// on files. One rank, which holds the lock of the run, calls the functions that write.
//
//   step-00001234.h5            the checkpoint (checkpoint.hpp)
//   step-00001234.part-0003.h5  its values, if the model is split over several ranks (parts.hpp)
//   step-00001234.json          the manifest of these files, written after them: step, sizes, and for each dataset its
//                               place in the file and the checksum of its values as they were in memory; one checksum
//                               of everything else in a file (manifest.hpp)
//   latest                      the name of the newest good one, written last
//   best                        the name of the best by checkpoint.keep_best
//   step-00001234.next.json     exists briefly if a checkpoint of this step is replaced (by replicas at their own pace,
//                               the first of which had done this step before). The old one counts until the new file
//                               takes its place; then this manifest counts, and replaces the old manifest
//
// A checkpoint is good if its manifest can be read, names this step and agrees with all its files. All of their bytes
// are compared before HDF5 opens a file, because a flipped bit in its structure can make the library crash or hang.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace echelon::inline checkpoint {

struct CheckpointInfo {
  std::string path;  // path of the .h5 file
  std::int64_t step = 0;
  std::uint64_t bytes = 0;  // after a write: size of all its files together
};

std::string checkpoint_path(const std::string& folder, std::int64_t step);  // <folder>/step-00001234.h5
// <folder>/step-00001234.part-0003.h5; if it replaces a part of the same step, with ".again.h5".
std::string part_path(const std::string& folder, std::int64_t step, int part, bool again = false);
bool is_part(const std::string& path);                     // judged by its name
std::string manifest_path(const std::string& checkpoint);  // step-00001234.json beside it
// The files that a manifest lists: the checkpoint itself, then its parts. Throws if there is no good manifest.
std::vector<std::string> files_of(const std::string& checkpoint);

// Writes the manifest and calls `publish`, which renames the file into place, in such an order that at each moment an
// earlier checkpoint of this step or the new one is good. On a failure nothing new is left. Throws EnvironmentError.
void publish_counted(const std::string& checkpoint, const nlohmann::ordered_json& manifest,
                     const std::function<void()>& publish);
// Completes what a killed attempt left half done: each waiting manifest takes its place or is removed.
void settle_manifests(const std::string& folder);
// Rewrite `latest` and `best` (none: removes it) for outside readers and find_saved; find_checkpoint does not use them.
// Throw EnvironmentError.
void set_latest(const std::string& folder, std::int64_t step);
void set_best(const std::string& folder, std::optional<std::int64_t> step);

// Describes the damage of a checkpoint, naming tensors and part files; "" if it is good. Never throws an Error. Reads
// every byte once.
std::string damage_of(const std::string& checkpoint);
// Throws DataError with the file and its damage_of, unless that is "".
void require_good(const std::string& checkpoint);

struct DamagedCheckpoint {
  std::int64_t step = 0;
  std::string text;  // "checkpoint results/../step-00000025 is damaged: .."
};
// Returns the newest good checkpoint of the folder, if any. Verifies from the newest until one is good. Newer damaged
// ones are skipped with a warning each, and added to `passed_over`.
std::optional<CheckpointInfo> find_checkpoint(const std::string& folder,
                                              std::vector<DamagedCheckpoint>* passed_over = nullptr);
// The same by manifest and file sizes only, without warnings: for messages, and before the lock is held.
std::optional<CheckpointInfo> glance_at_newest(const std::string& folder);

// Moves damaged checkpoints with their parts to the folder `to` (which it creates), and sets `latest` to `good`, so
// that new checkpoints of the same steps do not collide with them. Throws EnvironmentError on failure.
void set_damaged_aside(const std::string& folder, const std::vector<DamagedCheckpoint>& damaged, const std::string& to,
                       const CheckpointInfo& good);

// Keeps the newest `keep` checkpoints with a correct manifest and sizes, and that of step `best`. Removes the others,
// files without a manifest, and incomplete files of a killed run, manifests first. Ignores errors. Call it only if the
// newest checkpoint of the folder is this run's newest; later ones are set aside when a run resumes.
void prune_checkpoints(const std::string& folder, std::int64_t keep, std::int64_t best = -1);

}  // namespace echelon::inline checkpoint
