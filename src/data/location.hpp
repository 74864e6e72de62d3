// SPDX-License-Identifier: Apache-2.0
// Finds the files of a data set.
#pragma once

#include <string>
#include <vector>

#include "data/passed_over.hpp"

namespace echelon::inline data {

// Returns the files at `location` in the order of their names: a folder (its *.h5 and *.hdf5), one file, or a pattern
// with * and ?. Throws DataError if there is none, with the nearest folder that has some.
std::vector<std::string> files_at(const std::string& location);

// Warns if files_at skips HDF5 content: files of a folder with other names, and subfolders that contain shards.
std::vector<std::string> location_warnings(const std::string& location);

}  // namespace echelon::inline data
