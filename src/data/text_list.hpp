// A list of texts as a dataset of bytes: the texts in a row, each ended by a zero byte. Attributes hold less (64 KiB).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "h5/file.hpp"

namespace echelon::inline data {

// One chunk, with a checksum. Entries contain no zero byte.
void write_text_list(h5::Writer& writer, std::string_view dataset, const std::vector<std::string>& entries);
// DataError where the dataset is not of bytes, was never written, or its last entry has no zero byte.
std::vector<std::string> read_text_list(const h5::Reader& reader, std::string_view dataset);

}  // namespace echelon::inline data
