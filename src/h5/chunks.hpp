// Chunks of whole rows that are compressed or have a checksum: read raw, checked and inflated outside the library's
// lock.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace echelon::h5 {

// The storage of the rows of a dataset.
struct RowChunks {
  // The place of a filter in the pipeline, -1: it is not there.
  int shuffle = -1, deflate = -1, lzf = -1, checksum = -1;
  bool known = false;       // no filter but these, in this order
  bool whole_rows = false;  // chunks divide only the outermost axis
  bool filtered = false;    // has any filter
  std::int64_t rows = 0;    // of a chunk
  std::size_t element_bytes = 0;
  std::size_t row_bytes = 0;

  bool decodable() const { return filtered && known && whole_rows; }
  std::size_t bytes() const { return static_cast<std::size_t>(rows) * row_bytes; }
};

// Sets the filters' places, known and filtered from a dataset creation property list.
void describe_filters(hid_t creation, RowChunks& chunks);

enum class ChunkRead { ok, not_stored, failed };

// Reads the chunk that begins at `first_row` (of a dataset with `rank` axes) into `rows` (chunks.bytes()), decoded;
// adds the stored bytes to `bytes_read`. not_stored: the chunk was never written. failed: it is damaged, `why` is the
// reason.
ChunkRead read_chunk(hid_t dataset, int rank, const RowChunks& chunks, std::int64_t first_row, std::uint8_t* rows,
                     std::uint64_t& bytes_read, std::string& why);

}  // namespace echelon::h5
