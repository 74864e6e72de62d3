// SPDX-License-Identifier: Apache-2.0
// Rows of bytes. A row of variable length is a reference of 16 bytes to an object of a global heap: its length, the
// address of the heap, and the number of the object (HDF5 File Format Specification 3.0, VIII.C).
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "h5/heap_file.hpp"
#include "h5/reader_body.hpp"

namespace echelon::h5 {
namespace {

constexpr std::size_t kReference = 16;

struct OpenRows {
  Handle dataset, type;
  H5T_class_t kind = H5T_NO_CLASS;  // H5T_VLEN or H5T_OPAQUE
  std::int64_t count = 0, width = 0;
};

bool is_byte(hid_t type) { return H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) == 1; }

// None if rows are neither of variable length nor opaque.
std::optional<OpenRows> open_rows(hid_t file, const std::string& name) {
  OpenRows rows;
  rows.dataset = Handle(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!rows.dataset.ok()) return std::nullopt;
  rows.type = Handle(H5Dget_type(rows.dataset.id()), H5Tclose);
  rows.kind = H5Tget_class(rows.type.id());
  if (rows.kind != H5T_VLEN && rows.kind != H5T_OPAQUE) return std::nullopt;
  if (rows.kind == H5T_VLEN && !is_byte(Handle(H5Tget_super(rows.type.id()), H5Tclose).id())) return std::nullopt;
  const auto shape = shape_of_space(Handle(H5Dget_space(rows.dataset.id()), H5Sclose).id());
  if (!shape || shape->rank() != 1) return std::nullopt;
  rows.count = (*shape)[0];
  if (rows.kind == H5T_OPAQUE) rows.width = static_cast<std::int64_t>(H5Tget_size(rows.type.id()));
  return rows;
}

}  // namespace

std::string Reader::Body::references_of(const std::string& name, hid_t dataset, std::int64_t rows, std::int64_t first,
                                        std::int64_t count) {
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  const Handle of_file(H5Fget_create_plist(file.id()), H5Pclose);
  std::size_t address_bytes = 0, length_bytes = 0;
  hsize_t block = 0;
  H5Pget_sizes(of_file.id(), &address_bytes, &length_bytes);
  H5Pget_userblock(of_file.id(), &block);
  if (address_bytes != 8 || length_bytes != 8 || block != 0)
    fail(name, "has values of variable length in a file with a user block or short addresses, which is not supported");
  const H5D_layout_t layout = H5Pget_layout(creation.id());
  if (layout == H5D_CONTIGUOUS && H5Pget_external_count(creation.id()) == 0) {
    const haddr_t at = H5Dget_offset(dataset);
    const std::string where = fmt::format("{}: dataset '{}'", path, name);
    if (at == HADDR_UNDEF) fail(name, fmt::format("declares {} rows, but none was written", rows));
    const FileBytes found =
        ByteFile(path, where)
            .read(at + kReference * static_cast<std::uint64_t>(first), kReference * static_cast<std::uint64_t>(count));
    return std::string(found.part(0, found.size()));
  }
  if (layout != H5D_CHUNKED)
    fail(name,
         "has values of variable length in a virtual dataset, in other files or in its header; write them into "
         "a dataset of chunks");
  RowChunks chunks;
  hsize_t together = 0;
  H5Pget_chunk(creation.id(), 1, &together);
  describe_filters(creation.id(), chunks);
  chunks.rows = static_cast<std::int64_t>(together);
  chunks.element_bytes = chunks.row_bytes = kReference;
  if (!chunks.known || together == 0 || together > (1U << 24)) fail(name, "has chunks that cannot be read");
  std::string all;
  std::vector<std::uint8_t> part(chunks.bytes());
  std::uint64_t stored = 0;
  std::string why;
  for (std::int64_t row = first; row < first + count;) {
    const std::int64_t begin = row / chunks.rows * chunks.rows, end = std::min(first + count, begin + chunks.rows);
    if (read_chunk(dataset, 1, chunks, begin, part.data(), stored, why) != ChunkRead::ok)
      fail(name, fmt::format("is damaged in the chunk of rows {} to {}: {}", begin, end - 1,
                             why.empty() ? "it was never written" : why));
    all.append(reinterpret_cast<const char*>(part.data()) + kReference * static_cast<std::size_t>(row - begin),
               kReference * static_cast<std::size_t>(end - row));
    row = end;
  }
  bytes_read += stored;
  return all;
}

std::optional<ByteRows> Reader::byte_rows(std::string_view dataset) const {
  const Reading reading(body_->path);
  if (!body_->has(dataset)) return std::nullopt;
  if (const auto rows = open_rows(body_->file.id(), std::string(dataset)))
    return ByteRows{.count = rows->count,
                    .width = rows->width,
                    .stored_bytes = rows->width > 0 ? H5Dget_storage_size(rows->dataset.id()) : body_->file_bytes};
  const Handle opened(H5Dopen2(body_->file.id(), std::string(dataset).c_str(), H5P_DEFAULT), H5Dclose);
  if (!opened.ok() || !is_byte(Handle(H5Dget_type(opened.id()), H5Tclose).id())) return std::nullopt;
  const DatasetInfo found = info(dataset);
  if (found.shape.rank() != 2) return std::nullopt;
  return ByteRows{
      .count = found.shape[0], .width = found.shape[1], .stored_bytes = found.stored_bytes, .numbers = true};
}

void Reader::read_bytes(std::string_view dataset, std::int64_t first, std::int64_t count,
                        std::vector<std::uint8_t>& bytes, std::vector<std::size_t>& ends) const {
  const Reading reading(body_->path);
  const std::string name(dataset);
  const auto rows = open_rows(body_->file.id(), name);
  const std::int64_t all = rows ? rows->count : info(name).shape[0];
  if (first < 0 || count < 0 || first + count > all)
    body_->fail(name, fmt::format("has {} rows; rows {} to {} were expected", all, first, first + count - 1));
  bytes.clear();
  ends.clear();
  if (rows && rows->kind == H5T_VLEN) {
    const std::string where = fmt::format("{}: dataset '{}'", body_->path, name);
    const FileBytes found(body_->references_of(name, rows->dataset.id(), rows->count, first, count), where);
    const ByteFile file(body_->path, where);
    Heaps heaps(file);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t at = kReference * static_cast<std::size_t>(i);
      const std::uint64_t length = found.number(at, 4);
      if (length > 0) {
        const std::string_view value = heaps.object(found.number(at + 4, 8), found.number(at + 12, 4));
        if (value.size() < length) found.damaged("is damaged: a value is shorter than it claims");
        bytes.insert(bytes.end(), value.begin(), value.begin() + static_cast<std::ptrdiff_t>(length));
      }
      ends.push_back(bytes.size());
    }
    body_->bytes_read += heaps.bytes_read();
    return;
  }
  const std::int64_t width = rows ? rows->width : info(name).shape[1];
  bytes.resize(static_cast<std::size_t>(count * width));
  if (!rows) {
    read_rows(name, first, count, bytes.data(), DType::u8);
  } else if (count > 0) {
    const hsize_t start = static_cast<hsize_t>(first), extent = static_cast<hsize_t>(count);
    const Handle space(H5Dget_space(rows->dataset.id()), H5Sclose);
    const Handle memory(H5Screate_simple(1, &extent, nullptr), H5Sclose);
    if (H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, &start, nullptr, &extent, nullptr) < 0 ||
        H5Dread(rows->dataset.id(), rows->type.id(), memory.id(), space.id(), H5P_DEFAULT, bytes.data()) < 0)
      body_->fail(name, fmt::format("cannot be read at rows {} to {}: {}", first, first + count - 1, reason()));
    body_->bytes_read += bytes.size();
  }
  for (std::int64_t i = 1; i <= count; ++i) ends.push_back(static_cast<std::size_t>(i * width));
}

}  // namespace echelon::h5
