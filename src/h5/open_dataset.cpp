// SPDX-License-Identifier: Apache-2.0
// Opens a dataset, and refuses what the library would read wrongly or past its end.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "h5/filters.hpp"
#include "h5/open_file.hpp"
#include "h5/reader_body.hpp"
#include "h5/sources.hpp"

namespace echelon::h5 {
namespace {

// Behind an external link, a dataset is in another file than the one that was opened.
std::string linked_file_of(hid_t dataset, const std::string& path) {
  std::array<char, 4096> name{};
  return H5Fget_name(dataset, name.data(), name.size() - 1) <= 0 || path == name.data() ? "" : name.data();
}

// Counts the chunks of the shape and the written chunks.
void count_chunks(hid_t dataset, hid_t space, DatasetInfo& info) {
  if (info.shape.elems() == 0) return;
  for (int axis = 0; axis < info.shape.rank(); ++axis)
    info.chunks *= static_cast<std::uint64_t>((info.shape[axis] - 1) / info.chunk[axis] + 1);
  hsize_t written = 0;
  info.written_chunks = H5Dget_num_chunks(dataset, space, &written) >= 0 ? written : 0;
}

// Whether chunks of whole rows that have only a checksum are worth to be read without the library: it takes as long to
// find one as there are chunks (1.10).
bool are_large_and_plain(const RowChunks& chunks, const DatasetInfo& info) {
  constexpr std::size_t kLarge = 256 << 10;
  constexpr std::uint64_t kMost = 1024;
  return chunks.decodable() && chunks.shuffle < 0 && chunks.deflate < 0 && chunks.lzf < 0 && chunks.bytes() >= kLarge &&
         info.chunks <= kMost;
}

}  // namespace

std::unique_ptr<OpenDataset> Reader::Body::open_dataset(const std::string& name) {
  if (!has(name)) fail(name, "is missing");
  auto dataset = std::make_unique<OpenDataset>();
  dataset->handle = Handle(H5Dopen2(file.id(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset->handle.ok()) {
    const std::string why = reason();  // read before the hint, which calls the library
    fail(name, "cannot be opened: " + why + hint_of_newer_library());
  }
  dataset->linked_file = linked_file_of(dataset->handle.id(), path);
  dataset->file_bytes = dataset->linked_file.empty() ? file_bytes : refuse_unreadable(dataset->linked_file);
  dataset->type = Handle(H5Dget_type(dataset->handle.id()), H5Tclose);
  const auto dtype = dtype_of_type(dataset->type.id());
  if (!dtype)
    fail(name,
         fmt::format("holds {}; numbers are integers and floats of up to 64 bits", type_text(dataset->type.id())));
  const Handle space(H5Dget_space(dataset->handle.id()), H5Sclose);
  const auto shape = shape_of_space(space.id());
  if (!shape) fail(name, fmt::format("has more than {} axes", Shape::kMaxRank));
  double elems = 1;
  for (const std::int64_t extent : shape->extents()) elems *= static_cast<double>(std::max<std::int64_t>(extent, 1));
  if (elems > 0x1p58) fail(name, fmt::format("is damaged: its shape is {}", shape->text()));
  dataset->number = number_type_of(dataset->type.id());
  dataset->info.name = name;
  dataset->info.shape = *shape;
  dataset->info.dtype = *dtype;
  const std::size_t element_bytes = H5Tget_size(dataset->type.id());
  const bool converted = H5Tequal(dataset->type.id(), native_type(*dtype)) <= 0;
  if (converted) dataset->info.stored_as = type_text(dataset->type.id());
  dataset->info.stored_bytes = H5Dget_storage_size(dataset->handle.id());

  RowChunks& chunks = dataset->chunks;
  chunks.element_bytes = element_bytes;
  chunks.row_bytes = static_cast<std::size_t>(shape->row_elems()) * chunks.element_bytes;
  const Handle creation(H5Dget_create_plist(dataset->handle.id()), H5Pclose);
  const H5D_layout_t layout = H5Pget_layout(creation.id());
  const std::string where = fmt::format("{}: dataset '{}'", path, name);
  dataset->info.checksum = shape->elems() == 0;
  dataset->is_virtual = layout == H5D_VIRTUAL;
  if (dataset->is_virtual)
    dataset->info.checksum = check_virtual_sources(where, path, space.id(), creation.id());
  else if (layout == H5D_CONTIGUOUS && H5Pget_external_count(creation.id()) > 0)
    check_external_files(where, creation.id());
  else if (layout == H5D_CONTIGUOUS && shape->elems() > 0) {
    dataset->info.written_chunks = dataset->info.stored_bytes > 0 ? 1 : 0;
    require_place(*dataset, layout);
    dataset->placed = placed_values(dataset->handle.id(), dataset->home(path));
    dataset->info.contiguous = dataset->placed.any();
  } else if (layout == H5D_COMPACT && shape->elems() > 0) {
    require_place(*dataset, layout);
  }
  if (layout != H5D_CHUNKED) return dataset;
  if (shape->rank() == 0) fail(name, "is damaged: it is one value, and stored in chunks");
  std::array<hsize_t, Shape::kMaxRank> extents{};
  H5Pget_chunk(creation.id(), shape->rank(), extents.data());
  const std::vector<std::int64_t> chunk(extents.begin(), extents.begin() + shape->rank());
  dataset->info.chunk = Shape(std::span<const std::int64_t>(chunk));
  require_chunk(*dataset, space.id());
  count_chunks(dataset->handle.id(), space.id(), dataset->info);
  chunks.rows = chunk[0];
  chunks.whole_rows = dataset->info.chunk.without_front() == shape->without_front();
  describe_filters(creation.id(), chunks);
  if (const std::string why = missing_filter(creation.id()); !why.empty()) fail(name, why);
  require_place(*dataset, layout);
  if (are_large_and_plain(chunks, dataset->info)) chunks.file = chunk_file(dataset->handle.id(), dataset->home(path));
  dataset->info.deflate = chunks.known && (chunks.deflate >= 0 || chunks.lzf >= 0);
  dataset->info.checksum |= chunks.checksum >= 0;
  if (chunks.filtered &&
      (!chunks.decodable() || !dataset->number)) {  // the library decodes: let its cache hold one chunk
    const std::size_t one = static_cast<std::size_t>(dataset->info.chunk.elems()) * chunks.element_bytes;
    const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
    H5Pset_chunk_cache(access.id(), 521, std::max<std::size_t>(one, 1 << 20), 1.0);
    dataset->handle.close();
    dataset->handle = Handle(H5Dopen2(file.id(), name.c_str(), access.id()), H5Dclose);
    if (!dataset->handle.ok()) fail(name, "cannot be opened: " + reason());
  }
  return dataset;
}

// Throws DataError for a chunk shape that no dataset of this extent has; the library would read past its end.
void Reader::Body::require_chunk(const OpenDataset& dataset, hid_t space) const {
  const Shape& chunk = dataset.info.chunk;
  Extents most{};
  H5Sget_simple_extent_dims(space, nullptr, most.data());
  for (int axis = 0; axis < chunk.rank(); ++axis) {
    const hsize_t limit = std::max<hsize_t>(most[static_cast<std::size_t>(axis)], 1);
    if (chunk[axis] < 1 || static_cast<hsize_t>(chunk[axis]) > limit)
      fail(dataset.info.name,
           fmt::format("is damaged: its chunks are {}, its shape is {}", chunk.text(), dataset.info.shape.text()));
  }
}

// Throws DataError if the file is too small for the values; for chunked datasets, for one chunk (gzip: 1032:1 at most).
void Reader::Body::require_place(const OpenDataset& dataset, H5D_layout_t layout) const {
  constexpr double kMostInflated = 1100;
  const bool chunked = layout == H5D_CHUNKED;
  const DatasetInfo& info = dataset.info;
  double bytes = static_cast<double>(dataset.chunks.element_bytes);  // a double cannot overflow
  for (const std::int64_t extent : (chunked ? info.chunk : info.shape).extents()) bytes *= static_cast<double>(extent);
  const double most = static_cast<double>(dataset.file_bytes) * (dataset.chunks.filtered ? kMostInflated : 1);
  // The library reads past the end of its buffers if the storage of other layouts is smaller than the values.
  const bool other_place = !chunked && bytes != static_cast<double>(info.stored_bytes);
  const bool stored = info.stored_bytes > 0 || layout == H5D_COMPACT;
  if (stored && (bytes > most || other_place))
    fail(info.name, fmt::format("is damaged: its {} {}, the file has {} bytes", chunked ? "chunks are" : "shape is",
                                (chunked ? info.chunk : info.shape).text(), dataset.file_bytes));
}

}  // namespace echelon::h5
