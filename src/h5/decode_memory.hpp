// The memory that reading takes beside the rows that are read.
#pragma once

#include <string>
#include <string_view>

namespace echelon::h5 {

// Bytes that are held while rows of the dataset are read, beside these: the chunk as it is stored, another one where
// byte shuffle is undone, and the whole chunk where only a part of it is read; of filters that the library undoes its
// buffers and its cache. 0 where values are stored as they are. DataError where the file cannot be read.
double decode_bytes(const std::string& path, std::string_view dataset);

}  // namespace echelon::h5
