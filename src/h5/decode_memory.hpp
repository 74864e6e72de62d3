// SPDX-License-Identifier: Apache-2.0
// The memory that reading needs in addition to the rows that are read.
#pragma once

#include <string>
#include <string_view>

namespace echelon::h5 {

// Returns the bytes held while rows of the dataset are read, not counting the rows: the stored chunk, a second one if
// byte shuffle is undone, the whole chunk if only a part of it is read, and the library's buffers and cache for filters
// that the library undoes. 0 for values that are stored unfiltered. Throws DataError if the file cannot be read.
double decode_bytes(const std::string& path, std::string_view dataset);

}  // namespace echelon::h5
