// Where a set of shards lies.
#pragma once

#include <string>
#include <vector>

namespace echelon::inline data {

// The files that `location` means, in name order: a folder (its *.h5 and *.hdf5), one file, or a pattern with * and ?.
// DataError where there is none, with the nearest folder that has some.
std::vector<std::string> files_at(const std::string& location);

}  // namespace echelon::inline data
