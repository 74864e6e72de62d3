// Steps by which the files of a checkpoint are written, each under a temporary name first. EnvironmentError (disk full)
// in all of them; an unpublished Writer leaves no file.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/manifest.hpp"
#include "h5/file.hpp"

namespace echelon::inline checkpoint {

// Root attributes of a file that was begun.
void begin_checkpoint(h5::Writer& writer, std::int64_t version, const SaveOptions& options);

// Writes scalars as attributes, and tensors as datasets of what this rank holds of them, into a file that was begun; it
// is closed then. `visit` is called twice. HDF5 writes the structure alone, so that its lock is free while values are
// written, in blocks that are summed while they are in the cache. `path` is for messages.
std::vector<SavedValues> write_state(h5::Writer& writer, const std::string& path, const VisitAll& visit);

// Syncs a written file and reads it back from the disk; an error where it differs from its manifest.
void require_as_written(const h5::Writer& writer, const std::string& path, const nlohmann::ordered_json& manifest);

// Publishes the file, then its manifest, then `latest`.
void publish_checkpoint(h5::Writer& writer, const std::string& path, const nlohmann::ordered_json& manifest,
                        const SaveOptions& options);

}  // namespace echelon::inline checkpoint
