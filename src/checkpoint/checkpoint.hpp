// Checkpoints: one HDF5 file a checkpoint, tensors whole and by name, so that h5py reads it and any mesh resumes it.
// Where the model lies on several ranks the values are in further files (parts.hpp), which readers do not see.
//
//   datasets weights/<parameter>, optimiser/<state>/<parameter>, ..; one root attribute a counter (step, epoch, ..);
//   attributes echelon_format, format_version, training_data
//
// Which files of a folder are good, and how they are verified: checkpoint_files.hpp. The layout with an example in h5py
// is in results/CHECKPOINT_FILES.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/state.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/slices.hpp"

namespace echelon::inline checkpoint {

struct SaveOptions {
  std::string training_data = {};             // TrainedData as text, "" for none
  bool verify = false;                        // read back from the disk and compared before it counts
  std::function<void()> before_publish = {};  // called before the file gets its name; what it throws leaves no file
};

// Called by one rank; sends nothing. Writes the file, then its manifest, then `latest`: each appears whole or not at
// all. `visit` is called twice; every tensor is whole (with_gathered), else a failed check. EnvironmentError (disk
// full, a file that reads back otherwise) leaves earlier checkpoints and no file of this one. Cost: one pass over all
// bytes to sum and write, fsyncs; with `verify` one to read them.
CheckpointInfo save_checkpoint(const std::string& folder, std::int64_t step, const VisitAll& visit,
                               const SaveOptions& options = {});
// Called by every rank, without messages; each reads its part of a slice (a slice that is no range of rows: the whole
// tensor, in memory for a moment). Verifies nothing: find_checkpoint or require_good come before. DataError with file
// and tensor for a missing tensor, another shape or dtype, and per-replica state with OtherK::refuse of another number
// of replicas. `other_run`: the checkpoint is that of another run (run.resume_from, run/other_run.hpp): floating-point
// types may then differ (converted, with a line in the log), and where the file lacks them or has another shape,
// tensors other than weights become zero and the loss scale keeps its initial value.
void load_checkpoint(const std::string& path, const VisitAll& visit, bool other_run = false);

// checksum64 over the names and bytes of all visited state, in the order of the visit; one pass.
std::uint64_t state_checksum(const VisitAll& visit);

}  // namespace echelon::inline checkpoint
