// SPDX-License-Identifier: Apache-2.0
// A list of texts as a dataset of bytes, each text ended by a zero byte. Attributes cannot hold more than 64 KiB.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "h5/file.hpp"

namespace echelon::inline data {

// Writes one chunk with a checksum. Entries must not contain a zero byte.
void write_text_list(h5::Writer& writer, std::string_view dataset, const std::vector<std::string>& entries);
// Throws DataError if the dataset does not hold bytes or was never written, or if its last entry has no zero byte.
std::vector<std::string> read_text_list(const h5::Reader& reader, std::string_view dataset);

}  // namespace echelon::inline data
