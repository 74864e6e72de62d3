// SPDX-License-Identifier: Apache-2.0
#include "h5/chunks.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/reused_memory.hpp"
#include "base/shape.hpp"
#include "h5/fletcher.hpp"
#include "h5/handle.hpp"
#include "h5/lzf.hpp"

namespace echelon::h5 {
namespace {

// Undoes HDF5's byte shuffle, which stores the first bytes of all elements, then the second bytes, and so on. A tail
// shorter than an element is not shuffled.
void unshuffle(const std::uint8_t* from, std::size_t bytes, std::size_t element_bytes, std::uint8_t* to) {
  const std::size_t elems = bytes / element_bytes;
  for (std::size_t byte = 0; byte < element_bytes; ++byte)
    for (std::size_t i = 0; i < elems; ++i) to[i * element_bytes + byte] = from[byte * elems + i];
  for (std::size_t i = elems * element_bytes; i < bytes; ++i) to[i] = from[i];
}

constexpr const char* kWrongSum = "it does not match its checksum";

// Reads a chunk that is its rows and their checksum, and checks each block while it is in the processor's cache. None:
// it is not stored so.
std::optional<ChunkRead> read_checked(hid_t dataset, const RowChunks& chunks, const hsize_t* offset, std::uint8_t* rows,
                                      std::string& why) {
  constexpr std::size_t kBlock = 64 * Fletcher32::kPiece;
  unsigned skipped = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t stored = 0;
  const std::size_t whole = chunks.bytes();
  std::array<std::uint8_t, 4> checksum{};
  if (H5Dget_chunk_info_by_coord(dataset, offset, &skipped, &address, &stored) < 0 || address == HADDR_UNDEF ||
      skipped != 0 || stored != whole + checksum.size())
    return {};
  Fletcher32 sum;
  for (std::size_t at = 0; at < whole && why.empty(); at += kBlock) {
    const std::size_t bytes = std::min(kBlock, whole - at);
    why = read_placed(chunks.file, address + at, bytes, rows + at);
    sum.add(rows + at, bytes);
  }
  if (why.empty()) why = read_placed(chunks.file, address + whole, checksum.size(), checksum.data());
  if (why.empty() && !sum.is(checksum.data())) why = kWrongSum;
  return why.empty() ? ChunkRead::ok : ChunkRead::failed;
}

}  // namespace

void describe_filters(hid_t creation, RowChunks& chunks) {
  const int filters = H5Pget_nfilters(creation);
  chunks.filtered = filters > 0;
  chunks.known = true;
  int order = 0;
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, configuration = 0;
    std::size_t values = 0;
    const H5Z_filter_t kind =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &configuration);
    const int place = kind == H5Z_FILTER_SHUFFLE      ? 1
                      : kind == H5Z_FILTER_DEFLATE    ? 2
                      : kind == kLzf                  ? 2
                      : kind == H5Z_FILTER_FLETCHER32 ? 3
                                                      : 0;
    if (place == 1) chunks.shuffle = i;
    if (place == 2) (kind == kLzf ? chunks.lzf : chunks.deflate) = i;
    if (place == 3) chunks.checksum = i;
    chunks.known &= place > order;
    order = place;
  }
}

ChunkRead read_chunk(hid_t dataset, int rank, const RowChunks& chunks, std::int64_t first_row, std::uint8_t* rows,
                     std::uint64_t& bytes_read, std::string& why) {
  const auto fail = [&](std::string reason) {
    why = std::move(reason);
    return ChunkRead::failed;
  };
  std::array<hsize_t, Shape::kMaxRank> offset{};
  offset[0] = static_cast<hsize_t>(first_row);
  if (chunks.file.any())
    if (const std::optional<ChunkRead> done = read_checked(dataset, chunks, offset.data(), rows, why)) {
      bytes_read += *done == ChunkRead::ok ? chunks.bytes() + 4 : 0;
      return *done;
    }
  hsize_t stored = 0;
  if (H5Dget_chunk_storage_size(dataset, offset.data(), &stored) < 0 || stored == 0) return ChunkRead::not_stored;
  const std::size_t whole = chunks.bytes();
  if (stored > 2 * whole + 4096)  // deflate adds a thousandth at most
    return fail(fmt::format("it claims to need {} bytes for {} decoded ones", stored, whole));
  thread_local ReusedMemory memory;
  std::uint8_t* const raw = memory.at_least(stored);
  std::uint32_t skipped = 0;  // bit i: filter i was left out for this chunk
  if (rank > Shape::kMaxRank || H5Dread_chunk(dataset, H5P_DEFAULT, offset.data(), &skipped, raw) < 0)
    return fail(reason());
  bytes_read += stored;
  const auto applied = [&](int filter) { return filter >= 0 && (skipped >> filter & 1U) == 0; };
  std::size_t bytes = stored;  // length without the checksum
  if (applied(chunks.checksum)) {
    if (stored < 4) return fail("it is shorter than its checksum");
    bytes -= 4;
    Fletcher32 sum;
    sum.add(raw, bytes);
    if (!sum.is(raw + bytes)) return fail(kWrongSum);
  }
  const bool shuffled = applied(chunks.shuffle);
  std::vector<std::uint8_t> inflated;
  const std::uint8_t* decoded = raw;
  if (applied(chunks.lzf)) {
    if (shuffled) inflated.resize(whole);
    const std::size_t length = lzf_inflate(raw, bytes, shuffled ? inflated.data() : rows, whole);
    if (length != whole) return fail(fmt::format("it cannot be inflated (lzf, {} of {} bytes)", length, whole));
    if (!shuffled) return ChunkRead::ok;
    decoded = inflated.data();
  } else if (applied(chunks.deflate)) {
    if (shuffled) inflated.resize(whole);
    uLongf length = whole;
    const int status = uncompress(shuffled ? inflated.data() : rows, &length, raw, bytes);
    if (status != Z_OK || length != whole)
      return fail(fmt::format("it cannot be inflated (zlib status {}, {} of {} bytes)", status, length, whole));
    if (!shuffled) return ChunkRead::ok;
    decoded = inflated.data();
  } else if (bytes != whole) {
    return fail(fmt::format("it holds {} bytes instead of {}", bytes, whole));
  }
  if (shuffled)
    unshuffle(decoded, whole, chunks.element_bytes, rows);
  else
    std::copy(decoded, decoded + whole, rows);
  return ChunkRead::ok;
}

}  // namespace echelon::h5
