// How a file is opened for reading, and why one cannot be.
#pragma once

#include <cstdint>
#include <string>

#include "h5/handle.hpp"

namespace echelon::h5 {

// DataError with the reason for a file that cannot be opened, found without the library; else its bytes.
std::uint64_t refuse_unreadable(const std::string& path);
// DataError with the library's reason. A file system that refuses locks (Lustre without flock, GPFS) does not prevent
// reading: one line in the log.
Handle open_file(const std::string& path);

// What to do where the thread's last call failed on a format that the library does not know yet; "" elsewhere.
std::string hint_of_newer_library();

}  // namespace echelon::h5
