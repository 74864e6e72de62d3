// SPDX-License-Identifier: Apache-2.0
// Imports HDF5 files of other programs, as [data.hdf5] of an experiment describes them: `echelon data import hdf5`, in
// one process or on a launch's ranks (shared_import.hpp). The training data become shards.
//
// Samples are mixed in two steps: blocks of samples that are stored together are put in random order, then the samples
// of each window of consecutive blocks, which a rank holds in memory (256 MiB). Files of one sample, and large samples
// in a row, are blocks of one.
#pragma once

#include <string>

#include "data/import/import_team.hpp"

namespace echelon::inline data {

// `options.input`: the experiment (TOML). Returns the same on every rank. Throws ConfigError for an experiment whose
// data cannot be imported, DataError with file and record for data that are damaged, not as described, or changed since
// the import began; EnvironmentError if ranks do not see the same files, or while writing.
ImportWritten write_hdf5(const ShardOptions& options, const ImportTeam& team = {});

}  // namespace echelon::inline data
