// SPDX-License-Identifier: Apache-2.0
// Opens a file for reading, and explains why a file cannot be opened.
#pragma once

#include <cstdint>
#include <string>

#include "h5/handle.hpp"

namespace echelon::h5 {

// Throws DataError, with a reason found without the library, if a file cannot be opened; else returns its bytes.
std::uint64_t refuse_unreadable(const std::string& path);
// Throws DataError with the library's reason. A file system that refuses locks (Lustre without flock, GPFS) does not
// prevent reading; the log gets a line.
Handle open_file(const std::string& path);

// Returns advice if the thread's last call failed on a format that the library does not know yet; else "".
std::string hint_of_newer_library();

}  // namespace echelon::h5
