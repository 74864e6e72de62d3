// Compressed chunks that hold whole rows, fetched raw and inflated outside the library's lock.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace echelon::h5 {

// How the rows of a dataset lie in its file.
struct RowChunks {
  bool deflate = false;  // compressed by gzip, alone or behind byte shuffle, and nothing else
  bool shuffle = false;
  bool whole_rows = false;  // a chunk cuts only the outermost axis
  bool filtered = false;    // any filter at all
  std::int64_t rows = 0;    // of a chunk
  std::size_t element_bytes = 0;
  std::size_t row_bytes = 0;

  bool inflatable() const { return deflate && whole_rows; }
  std::size_t bytes() const { return static_cast<std::size_t>(rows) * row_bytes; }
};

// Filters of a creation property list into `chunks`.
void describe_filters(hid_t creation, RowChunks& chunks);

enum class ChunkRead { ok, not_stored, failed };

// Reads the chunk that begins at `first_row` (of a dataset with `rank` axes) into `rows` (chunks.bytes()), decoded;
// adds the stored bytes to `bytes_read`. not_stored: no data was ever written there. failed: `why` says it.
ChunkRead read_chunk(hid_t dataset, int rank, const RowChunks& chunks, std::int64_t first_row, std::uint8_t* rows,
                     std::uint64_t& bytes_read, std::string& why);

}  // namespace echelon::h5
