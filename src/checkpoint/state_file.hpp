// SPDX-License-Identifier: Apache-2.0
// The steps in which the files of a checkpoint are written, each under a temporary name first. All of them throw
// EnvironmentError (disk full); an unpublished Writer leaves no file.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/manifest.hpp"
#include "h5/file.hpp"

namespace echelon::inline checkpoint {

// Writes the root attributes of a new file.
void begin_checkpoint(h5::Writer& writer, std::int64_t version, const SaveOptions& options);

// Writes scalars as attributes, and this rank's part of each tensor as a dataset, into a file after begin_checkpoint;
// then the file is closed. Calls `visit` twice. HDF5 writes only the structure, so that its lock is free while values
// are written, in blocks that are summed while they are in the cache. `path` is for messages.
std::vector<SavedValues> write_state(h5::Writer& writer, const std::string& path, const VisitAll& visit);

// Syncs a written file and reads it back from the disk; throws if it differs from its manifest.
void require_as_written(const h5::Writer& writer, const std::string& path, const nlohmann::ordered_json& manifest);

// Publishes the file, then its manifest, then `latest`.
void publish_checkpoint(h5::Writer& writer, const std::string& path, const nlohmann::ordered_json& manifest,
                        const SaveOptions& options);

}  // namespace echelon::inline checkpoint
