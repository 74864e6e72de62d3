#include "h5/chunks.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/shape.hpp"
#include "h5/handle.hpp"

namespace echelon::h5 {
namespace {

// Undoes HDF5's byte shuffle: all first bytes of the elements, then all second ones, ... A tail shorter than an element
// stays as it is.
void unshuffle(const std::vector<std::uint8_t>& from, std::size_t element_bytes, std::uint8_t* to) {
  const std::size_t elems = from.size() / element_bytes;
  for (std::size_t byte = 0; byte < element_bytes; ++byte)
    for (std::size_t i = 0; i < elems; ++i) to[i * element_bytes + byte] = from[byte * elems + i];
  for (std::size_t i = elems * element_bytes; i < from.size(); ++i) to[i] = from[i];
}

}  // namespace

void describe_filters(hid_t creation, RowChunks& chunks) {
  const int filters = H5Pget_nfilters(creation);
  chunks.filtered = filters > 0;
  std::array<H5Z_filter_t, 2> kinds{H5Z_FILTER_NONE, H5Z_FILTER_NONE};
  for (int i = 0; i < filters && i < 2; ++i) {
    unsigned flags = 0, configuration = 0;
    std::size_t values = 0;
    kinds[static_cast<std::size_t>(i)] =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &configuration);
  }
  chunks.shuffle = filters == 2 && kinds[0] == H5Z_FILTER_SHUFFLE && kinds[1] == H5Z_FILTER_DEFLATE;
  chunks.deflate = chunks.shuffle || (filters == 1 && kinds[0] == H5Z_FILTER_DEFLATE);
}

ChunkRead read_chunk(hid_t dataset, int rank, const RowChunks& chunks, std::int64_t first_row, std::uint8_t* rows,
                     std::uint64_t& bytes_read, std::string& why) {
  std::array<hsize_t, Shape::kMaxRank> offset{};
  offset[0] = static_cast<hsize_t>(first_row);
  hsize_t stored = 0;
  if (H5Dget_chunk_storage_size(dataset, offset.data(), &stored) < 0 || stored == 0) return ChunkRead::not_stored;
  const std::size_t whole = chunks.bytes();
  if (stored > 2 * whole + 4096) {  // deflate adds a thousandth at most
    why = fmt::format("the chunk at row {} claims {} bytes for {} decoded ones", first_row, stored, whole);
    return ChunkRead::failed;
  }
  std::vector<std::uint8_t> raw(stored);
  std::uint32_t skipped = 0;  // bit i: filter i was left out for this chunk
  if (rank > Shape::kMaxRank || H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &skipped, raw.data()) < 0) {
    why = reason();
    return ChunkRead::failed;
  }
  bytes_read += stored;
  const std::uint32_t deflate_bit = chunks.shuffle ? 2U : 1U;
  const bool shuffled = chunks.shuffle && (skipped & 1U) == 0;
  std::vector<std::uint8_t> inflated(shuffled ? whole : 0);
  if ((skipped & deflate_bit) == 0) {
    uLongf length = whole;
    const int status = uncompress(shuffled ? inflated.data() : rows, &length, raw.data(), raw.size());
    if (status != Z_OK || length != whole) {
      why = fmt::format("the compressed chunk at row {} is damaged (zlib status {}, {} of {} bytes)", first_row, status,
                        length, whole);
      return ChunkRead::failed;
    }
  } else if (raw.size() != whole) {
    why = fmt::format("the chunk at row {} holds {} bytes instead of {}", first_row, raw.size(), whole);
    return ChunkRead::failed;
  } else if (shuffled) {
    inflated.swap(raw);
  } else {
    std::copy(raw.begin(), raw.end(), rows);
  }
  if (shuffled) unshuffle(inflated, chunks.element_bytes, rows);
  return ChunkRead::ok;
}

}  // namespace echelon::h5
