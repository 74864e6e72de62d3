// Checkpoints: one HDF5 file a checkpoint, tensors stored whole and by name, so that h5py reads it and any mesh resumes
// it.
//
//   checkpoints/step-00001234.h5      datasets weights/<parameter>, optimiser/<state>/<parameter>, ..; one root
//                                     attribute a counter (step, epoch, ..); attributes echelon_format, format_version
//   checkpoints/step-00001234.json    manifest: bytes and checksum64 of every dataset, written after the file
//   checkpoints/latest                the name of the newest good one, written last
//
// A checkpoint counts only with a manifest that agrees; a damaged newest one is passed over, said aloud, for the one
// before. The layout with an example in h5py is in train/README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/state.hpp"
#include "train/slices.hpp"

namespace echelon {

struct CheckpointInfo {
  std::string path;  // of the .h5 file
  std::int64_t step = 0;
};

// Rank 0 of the replicas writes what is replicated, and slices that it holds whole or that `wholes` has
// (gather_slices). EnvironmentError (disk full) leaves the earlier ones as they were and nothing of its own.
CheckpointInfo save_checkpoint(const std::string& folder, std::int64_t step, const VisitAll& visit,
                               const WholeTensors& wholes = {});
// The newest good checkpoint of the folder, if there is one: every byte is read and checked.
std::optional<CheckpointInfo> find_checkpoint(const std::string& folder);
// Every rank; of a slice its rows. DataError names what does not fit (missing tensor, other shape or type).
void load_checkpoint(const std::string& path, const VisitAll& visit);
// Removes all but the newest `keep`, files without a manifest, and what a killed run left half written.
void prune_checkpoints(const std::string& folder, std::int64_t keep);

// checksum64 over the names and bytes of all that is shown: equal exactly where two states are.
std::uint64_t state_checksum(const VisitAll& visit);

}  // namespace echelon
