// The files of a folder of checkpoints: which are good, which are damaged, which are kept. All functions work on files
// alone; those that write are called by one rank, which holds the lock of the run.
//
//   step-00001234.h5            the checkpoint (checkpoint.hpp)
//   step-00001234.part-0003.h5  values of it, where the model lies on several ranks (parts.hpp)
//   step-00001234.json          the manifest of these files, written after them: step, sizes, and for each dataset its
//                               place in the file and the checksum of its values as they were in memory; one checksum
//                               of everything else in a file (manifest.hpp)
//   latest                      the name of the newest good one, written last
//   best                        the name of the best by checkpoint.keep_best
//   step-00001234.next.json     for a moment: where a checkpoint of this step was there before (replicas at their own
//                               pace, the first of which had done this step already), it counts until the new file
//                               takes its place, and this manifest from then on, which takes the other's place next
//
// A checkpoint is good when its manifest can be read, is of this step and agrees with all its files. Every byte of them
// is compared before HDF5 opens one: a flipped bit in its structure can make the library crash or hang.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace echelon::inline checkpoint {

struct CheckpointInfo {
  std::string path;  // of the .h5 file
  std::int64_t step = 0;
  std::uint64_t bytes = 0;  // of one that was written, all its files together
};

std::string checkpoint_path(const std::string& folder, std::int64_t step);  // <folder>/step-00001234.h5
// <folder>/step-00001234.part-0003.h5; of one that takes the place of another, ".again.h5".
std::string part_path(const std::string& folder, std::int64_t step, int part, bool again = false);
bool is_part(const std::string& path);                     // by its name
std::string manifest_path(const std::string& checkpoint);  // step-00001234.json beside it
// The files that a manifest counts: the checkpoint itself, then its parts. Throws where there is no good manifest.
std::vector<std::string> files_of(const std::string& checkpoint);

// Calls `publish`, which renames the file into place, and writes its manifest, so that at each moment an earlier
// checkpoint of this step is good, or the new one. Where that fails nothing new is left. EnvironmentError.
void publish_counted(const std::string& checkpoint, const nlohmann::ordered_json& manifest,
                     const std::function<void()>& publish);
// Takes up what an attempt that was killed in between left behind: each manifest in waiting takes its place, or goes.
void settle_manifests(const std::string& folder);
// Rewrites `latest`, and `best` (none: removes it), for readers outside and find_saved; find_checkpoint does not use
// them. EnvironmentError.
void set_latest(const std::string& folder, std::int64_t step);
void set_best(const std::string& folder, std::optional<std::int64_t> step);

// Description of the damage of a checkpoint, naming tensors and the file of a part, "" where it is good; never throws
// an Error. Reads every byte once.
std::string damage_of(const std::string& checkpoint);
// Throws DataError with the file and damage_of it, unless that is "".
void require_good(const std::string& checkpoint);

struct DamagedCheckpoint {
  std::int64_t step = 0;
  std::string text;  // "checkpoint results/../step-00000025 is damaged: .."
};
// The newest good checkpoint of the folder, if there is one. Damaged ones that are newer are passed over with a
// warning each; `passed_over` receives them. Verifies from the newest until one is good.
std::optional<CheckpointInfo> find_checkpoint(const std::string& folder,
                                              std::vector<DamagedCheckpoint>* passed_over = nullptr);
// The same by manifest and file sizes alone, without a warning: for messages, and before the lock is held.
std::optional<CheckpointInfo> glance_at_newest(const std::string& folder);

// Moves damaged checkpoints, parts included, to the folder `to` (created), and sets `latest` to `good`, so that new
// checkpoints of the same steps do not collide with them. EnvironmentError where that is not possible.
void set_damaged_aside(const std::string& folder, const std::vector<DamagedCheckpoint>& damaged, const std::string& to,
                       const CheckpointInfo& good);

// Keeps the newest `keep` whose manifest and sizes are right, and that of step `best`; removes the others, files
// without a manifest, and incomplete files of a killed run, manifests first. Errors are ignored. Called when the newest
// checkpoint of the folder is the run's own newest: later ones are set aside when a run resumes.
void prune_checkpoints(const std::string& folder, std::int64_t keep, std::int64_t best = -1);

}  // namespace echelon::inline checkpoint
