// SPDX-License-Identifier: Apache-2.0
// Checkpoints: one HDF5 file each, with whole tensors by name, so that h5py can read it and any mesh can resume from
// it. If the model is split over several ranks, the values are in further files (parts.hpp), hidden from readers.
//
//   datasets     weights/<parameter>, optimiser/<state>/<parameter>, ..
//   attributes   one per counter (step, epoch, ..), at the root; echelon_format, format_version, training_data
//
// checkpoint_files.hpp decides which files of a folder are good and how they are verified. results/CHECKPOINT_FILES.md
// gives the layout with an example in h5py.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/state.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/slices.hpp"

namespace echelon::inline checkpoint {

struct SaveOptions {
  std::string training_data = {};             // TrainedData as text; "": none
  bool verify = false;                        // read back from the disk and compare before the checkpoint counts
  std::function<void()> before_publish = {};  // called before the file gets its name; if it throws, no file is left
};

// Called by one rank; sends no messages. Writes the file, then its manifest, then `latest`; each appears whole or not
// at all. Calls `visit` twice; every tensor must be whole (with_gathered), else a check fails. On EnvironmentError
// (disk full, a file that reads back differently) earlier checkpoints stay and no file of this one is left. Cost: one
// pass over all bytes to sum and write them, fsyncs; with `verify` one more to read them.
CheckpointInfo save_checkpoint(const std::string& folder, std::int64_t step, const VisitAll& visit,
                               const SaveOptions& options = {});
// Called by every rank, without messages. Each rank reads its part of a slice (or the whole tensor, temporarily, if the
// slice is not a range of rows). Does not verify: call find_checkpoint or require_good first. Throws DataError with
// file and tensor for a missing tensor, another shape or dtype, and for per-replica state with OtherK::refuse from
// another number of replicas. `other_run`: the checkpoint is from another run (run.resume_from, run/other_run.hpp).
// Then floating-point types may differ (converted, with a line in the log); tensors other than weights that are missing
// or have another shape become zero, and the loss scale keeps its initial value.
void load_checkpoint(const std::string& path, const VisitAll& visit, bool other_run = false);

}  // namespace echelon::inline checkpoint
