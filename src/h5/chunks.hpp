// SPDX-License-Identifier: Apache-2.0
// Chunks of whole rows that are compressed or have a checksum. They are read raw, and checked and inflated outside the
// library's lock; large ones that have only a checksum are read without the library.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "h5/placed.hpp"

namespace echelon::h5 {

// How the rows of a dataset are stored.
struct RowChunks {
  // Position of each filter in the pipeline; -1: absent.
  int shuffle = -1, deflate = -1, lzf = -1, checksum = -1;
  bool known = false;       // only these filters are used, in this order
  bool whole_rows = false;  // chunks divide only the outermost axis
  bool filtered = false;    // has any filter
  std::int64_t rows = 0;    // rows per chunk
  std::size_t element_bytes = 0;
  std::size_t row_bytes = 0;
  PlacedValues file;  // offset 0: the file, if chunks that have only a checksum are read without the library

  bool decodable() const { return filtered && known && whole_rows; }
  std::size_t bytes() const { return static_cast<std::size_t>(rows) * row_bytes; }
};

// Sets the filters' positions, `known` and `filtered` from a dataset creation property list.
void describe_filters(hid_t creation, RowChunks& chunks);

enum class ChunkRead { ok, not_stored, failed };

// Reads the chunk that begins at `first_row` (of a dataset with `rank` axes) into `rows` (chunks.bytes() long),
// decoded, and adds the stored bytes to `bytes_read`. not_stored: the chunk was never written. failed: it is damaged,
// and `why` gives the reason.
ChunkRead read_chunk(hid_t dataset, int rank, const RowChunks& chunks, std::int64_t first_row, std::uint8_t* rows,
                     std::uint64_t& bytes_read, std::string& why);

}  // namespace echelon::h5
