// SPDX-License-Identifier: Apache-2.0
// echelon data inspect, for HDF5 files that are not shards.
#pragma once

#include <string>

namespace echelon::cli {

// Prints what is in the first file, and the [data.hdf5] table that would read it. Returns the exit code.
int inspect_foreign(const std::string& location, const std::string& why);

}  // namespace echelon::cli
