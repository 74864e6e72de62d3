// SPDX-License-Identifier: Apache-2.0
// Values that lie in a file in one piece. They are read without the library and its lock, so that threads do not wait
// for each other.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace echelon::h5 {

struct PlacedValues {
  int descriptor = -1;       // the library's, open as long as the dataset; its position is not moved
  std::uint64_t offset = 0;  // in bytes from the file's beginning, user block included
  std::string path;          // of the file that holds the dataset

  bool any() const { return descriptor >= 0; }
};

// Returns where the values of a contiguous dataset without raw files lie; none if they were never written, or if the
// library reads the file by a driver of several files or of none.
PlacedValues placed_values(hid_t dataset, const std::string& path);

// The same of values in chunks, with offset 0; none in a file with a user block, from which the library counts the
// places of chunks in some versions and not in others.
PlacedValues chunk_file(hid_t dataset, const std::string& path);

// Reads bytes [at, at + bytes) of the values, as they are in the file. Returns "", or why they cannot be read.
std::string read_placed(const PlacedValues& values, std::uint64_t at, std::size_t bytes, void* dst);

}  // namespace echelon::h5
