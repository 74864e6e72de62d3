// SPDX-License-Identifier: Apache-2.0
// Attribute texts of variable length, as h5py writes them for str. Their bytes are in global heaps, which have no
// checksums, and in which a flipped bit crashes the library (1.10). So they are read from the file without the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace echelon::h5 {

// Reads the `count` texts of the attribute `name` of the object whose header is at byte `header` of the file at `path`.
// Format: HDF5 File Format Specification 3.0, IV.A (object headers), IV.A.2.m (attributes), III.E (global heaps), with
// addresses and lengths of 8 bytes and no user block. Throws DataError, beginning with `where`, if the bytes violate
// the format or the attribute is stored in another way (dense storage, a shared message).
std::vector<std::string> read_heap_texts(const std::string& path, std::uint64_t header, std::string_view name,
                                         std::size_t count, const std::string& where);

}  // namespace echelon::h5
