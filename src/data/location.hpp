// The files of a data set.
#pragma once

#include <string>
#include <vector>

#include "data/passed_over.hpp"

namespace echelon::inline data {

// The files at `location` in the order of their names: a folder (its *.h5 and *.hdf5), one file, or a pattern with
// * and ?. DataError where there is none, with the nearest folder that has some.
std::vector<std::string> files_at(const std::string& location);

// A line where files_at leaves out what holds HDF5: files of a folder with other names, and folders with shards in it.
std::vector<std::string> location_warnings(const std::string& location);

}  // namespace echelon::inline data
