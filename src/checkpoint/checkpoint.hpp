// Checkpoints: one HDF5 file a checkpoint, tensors stored whole and by name, so that h5py reads it and any mesh resumes
// it.
//
//   datasets weights/<parameter>, optimiser/<state>/<parameter>, ..; one root attribute a counter (step, epoch, ..);
//   attributes echelon_format, format_version, training_data
//
// Which files of a folder count, and how they are verified: checkpoint_files.hpp. The layout with an example in h5py is
// in train/README.md.
#pragma once

#include <cstdint>
#include <string>

#include "base/state.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "checkpoint/slices.hpp"

namespace echelon::inline checkpoint {

// Rank 0 of the replicas writes what is replicated, and slices that it holds whole or that `wholes` has
// (gather_slices). `training_data`: TrainedData as text, "" for none. EnvironmentError (disk full) leaves the earlier
// ones as they were and nothing of its own.
CheckpointInfo save_checkpoint(const std::string& folder, std::int64_t step, const VisitAll& visit,
                               const WholeTensors& wholes = {}, const std::string& training_data = {});
// Every rank; of a slice its rows. DataError names what does not fit (missing tensor, other shape or type).
// `other_run`: the checkpoint is another run's (run.resume_from, run/other_run.hpp). Floating-point types may then
// differ, which is logged; tensors other than weights, and the loss's scale, begin anew where the file lacks them or
// has them in another shape.
void load_checkpoint(const std::string& path, const VisitAll& visit, bool other_run = false);

// checksum64 over the names and bytes of all that is shown: equal exactly where two states are.
std::uint64_t state_checksum(const VisitAll& visit);

}  // namespace echelon::inline checkpoint
