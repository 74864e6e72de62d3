// Checkpoints: one HDF5 file a checkpoint, tensors stored whole and by name, so that h5py reads it and any mesh resumes
// it.
//
//   checkpoints/step-00001234.h5      datasets weights/<parameter>, optimiser/<state>/<parameter>, .. ; attributes:
//   format,
//                                     step, epoch, config hash, and one scalar a counter
//   checkpoints/step-00001234.json    manifest: bytes and checksum64 of every dataset, written after the file
//   checkpoints/latest                the name of the newest good one, written last
//
// A checkpoint counts only with a manifest that agrees; a damaged newest one is passed over, said aloud, for the one
// before.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/state.hpp"

namespace echelon {

// Shows every stateful object of the run to the visitor.
using VisitAll = std::function<void(StateVisitor&)>;

struct CheckpointInfo {
  std::string path;  // of the .h5 file
  std::int64_t step = 0;
};

// Rank 0 of the replicas. Returns the seconds it took. EnvironmentError (disk full) leaves the earlier ones as they
// were.
CheckpointInfo save_checkpoint(const std::string& folder, std::int64_t step, const VisitAll& visit);
// The newest good checkpoint of the folder, if there is one.
std::optional<CheckpointInfo> find_checkpoint(const std::string& folder);
// Every rank. DataError names what does not fit (missing tensor, other shape).
void load_checkpoint(const std::string& path, const VisitAll& visit);
// Removes all but the newest `keep`.
void prune_checkpoints(const std::string& folder, std::int64_t keep);

}  // namespace echelon
