// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "base/check.hpp"
#include "base/crash_note.hpp"
#include "base/error.hpp"
#include "h5/chunks.hpp"
#include "h5/dataset_paths.hpp"
#include "h5/file.hpp"
#include "h5/filters.hpp"
#include "h5/handle.hpp"
#include "h5/open_file.hpp"
#include "h5/read_attributes.hpp"
#include "h5/sources.hpp"

namespace echelon::h5 {
namespace {

struct OpenDataset {
  Handle handle;
  Handle type;  // the type in the file
  DatasetInfo info;
  RowChunks chunks;
  bool is_virtual = false;
  std::uint64_t file_bytes = 0;  // size of the file that holds the dataset; behind an external link it is another file
};

// Wraps every library call that reads a file.
class Reading {
 public:
  explicit Reading(const std::string& path) : note_("the HDF5 library read", path.c_str()) { quiet_thread(); }

 private:
  CrashNote note_;
};

// Selects a hyperslab of whole rows.
Handle rows_of(hid_t space, std::int64_t first, const Shape& shape, std::int64_t count) {
  Handle selection(H5Scopy(space), H5Sclose);
  Extents start{};
  start[0] = static_cast<hsize_t>(first);
  const Extents extent = extents_of(shape.with_front(count));
  if (H5Sselect_hyperslab(selection.id(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr) < 0) return {};
  return selection;
}

// Behind an external link, a dataset is in another file than the one that was opened.
std::uint64_t bytes_of_its_file(hid_t dataset, const std::string& path, std::uint64_t bytes) {
  std::array<char, 4096> name{};
  if (H5Fget_name(dataset, name.data(), name.size() - 1) <= 0 || path == name.data()) return bytes;
  return refuse_unreadable(name.data());
}

// Counts the chunks of the shape and the written chunks.
void count_chunks(hid_t dataset, hid_t space, DatasetInfo& info) {
  if (info.shape.elems() == 0) return;
  for (int axis = 0; axis < info.shape.rank(); ++axis)
    info.chunks *= static_cast<std::uint64_t>((info.shape[axis] - 1) / info.chunk[axis] + 1);
  hsize_t written = 0;
  info.written_chunks = H5Dget_num_chunks(dataset, space, &written) >= 0 ? written : 0;
}

}  // namespace

struct Reader::Body {
  std::string path;
  std::uint64_t file_bytes = 0;
  Handle file;
  std::mutex mutex;  // guards `open`
  std::map<std::string, std::unique_ptr<OpenDataset>, std::less<>> open;
  std::atomic<std::uint64_t> bytes_read = 0;

  [[noreturn]] void fail(std::string_view dataset, const std::string& what) const {
    throw DataError(fmt::format("{}: dataset '{}' {}", path, dataset, what));
  }
  bool has(std::string_view name) const {
    const std::optional<bool> found = path_exists(file.id(), name);
    if (!found) fail(name, "cannot be looked up: " + reason());
    return *found;
  }
  const OpenDataset& dataset(std::string_view name);
  std::unique_ptr<OpenDataset> open_dataset(const std::string& name);
  void require_chunk(const OpenDataset& dataset, hid_t space) const;
  void require_place(const OpenDataset& dataset, H5D_layout_t layout) const;
  void read_slab(const OpenDataset& dataset, std::int64_t first, std::int64_t count, void* dst, DType dtype);
  void read_whole_chunks(const OpenDataset& dataset, std::int64_t first, std::int64_t count, std::uint8_t* dst);
};

const OpenDataset& Reader::Body::dataset(std::string_view name) {
  const Reading reading(path);
  const std::lock_guard lock(mutex);
  auto found = open.find(name);
  if (found == open.end()) found = open.emplace(std::string(name), open_dataset(std::string(name))).first;
  return *found->second;
}

std::unique_ptr<OpenDataset> Reader::Body::open_dataset(const std::string& name) {
  if (!has(name)) fail(name, "is missing");
  auto dataset = std::make_unique<OpenDataset>();
  dataset->handle = Handle(H5Dopen2(file.id(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset->handle.ok()) {
    const std::string why = reason();  // read before the hint, which calls the library
    fail(name, "cannot be opened: " + why + hint_of_newer_library());
  }
  dataset->file_bytes = bytes_of_its_file(dataset->handle.id(), path, file_bytes);
  dataset->type = Handle(H5Dget_type(dataset->handle.id()), H5Tclose);
  const auto dtype = dtype_of_type(dataset->type.id());
  if (!dtype)
    fail(name, fmt::format("holds {}; known are integers and floats of up to 64 bits", type_text(dataset->type.id())));
  const Handle space(H5Dget_space(dataset->handle.id()), H5Sclose);
  const auto shape = shape_of_space(space.id());
  if (!shape) fail(name, fmt::format("has more than {} axes", Shape::kMaxRank));
  double elems = 1;
  for (const std::int64_t extent : shape->extents()) elems *= static_cast<double>(std::max<std::int64_t>(extent, 1));
  if (elems > 0x1p58) fail(name, fmt::format("is damaged: its shape is {}", shape->text()));
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
  dataset->info.deflate = chunks.known && (chunks.deflate >= 0 || chunks.lzf >= 0);
  dataset->info.checksum |= chunks.checksum >= 0;
  if (chunks.filtered && (!chunks.decodable() || converted)) {  // the library decodes: let its cache hold one chunk
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

void Reader::Body::read_slab(const OpenDataset& dataset, std::int64_t first, std::int64_t count, void* dst,
                             DType dtype) {
  const Shape& shape = dataset.info.shape;
  const Handle space(H5Dget_space(dataset.handle.id()), H5Sclose);
  const Shape region = shape.rank() == 0 ? shape : shape.with_front(count);
  // The memory space needs the axes of the file: with a flat one the library copies element by element.
  const Handle memory = space_of(region);
  const Handle rows = shape.rank() == 0 ? space_of(region) : rows_of(space.id(), first, shape, count);
  if (!memory.ok() || !rows.ok() ||
      H5Dread(dataset.handle.id(), native_type(dtype), memory.id(), rows.id(), H5P_DEFAULT, dst) < 0)
    fail(dataset.info.name, fmt::format("cannot be read at rows {} to {}: {}", first, first + count - 1, reason()));
  if (dataset.is_virtual)
    require_sources(fmt::format("{}: dataset '{}'", path, dataset.info.name), path,
                    Handle(H5Dget_create_plist(dataset.handle.id()), H5Pclose).id());
  bytes_read += static_cast<std::uint64_t>(region.elems()) * dataset.chunks.element_bytes;
}

void Reader::Body::read_whole_chunks(const OpenDataset& dataset, std::int64_t first, std::int64_t count,
                                     std::uint8_t* dst) {
  const RowChunks& chunks = dataset.chunks;
  std::vector<std::uint8_t> part;  // a chunk of which only some rows are read
  std::uint64_t stored = 0;
  std::string why;
  while (count > 0) {
    const std::int64_t begin = first / chunks.rows * chunks.rows;
    const std::int64_t skip = first - begin;
    const std::int64_t take = std::min(count, chunks.rows - skip);
    const bool whole = take == chunks.rows;
    if (!whole) part.resize(chunks.bytes());
    const ChunkRead status = read_chunk(dataset.handle.id(), dataset.info.shape.rank(), chunks, begin,
                                        whole ? dst : part.data(), stored, why);
    if (status == ChunkRead::failed)
      fail(dataset.info.name, fmt::format("is damaged in the chunk of rows {} to {}: {}", begin,
                                          std::min(begin + chunks.rows, dataset.info.shape[0]) - 1, why));
    const std::size_t bytes = static_cast<std::size_t>(take) * chunks.row_bytes;
    if (status == ChunkRead::not_stored)
      read_slab(dataset, first, take, dst, dataset.info.dtype);
    else if (!whole)
      std::memcpy(dst, part.data() + static_cast<std::size_t>(skip) * chunks.row_bytes, bytes);
    dst += bytes;
    first += take;
    count -= take;
  }
  bytes_read += stored;
}

Reader::Reader(const std::string& path) : body_(std::make_unique<Body>()) {
  const Reading reading(path);
  body_->file_bytes = refuse_unreadable(path);
  body_->path = path;
  body_->file = open_file(path);
}
Reader::~Reader() {
  if (!body_) return;
  const Reading reading(body_->path);
  body_->open.clear();
  body_->file.close();
}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

const std::string& Reader::path() const { return body_->path; }
std::uint64_t Reader::bytes_read() const { return body_->bytes_read; }

bool Reader::has(std::string_view dataset) const {
  const Reading reading(body_->path);
  return body_->has(dataset);
}

DatasetInfo Reader::info(std::string_view dataset) const { return body_->dataset(dataset).info; }

void Reader::require_written(std::string_view dataset) const {
  const DatasetInfo found = info(dataset);
  if (found.written_chunks < found.chunks)
    body_->fail(dataset, fmt::format("declares {}, but {} of its {} chunks were written", found.shape.text(),
                                     found.written_chunks, found.chunks));
}

std::vector<DatasetInfo> Reader::datasets() const {
  const Reading reading(body_->path);
  const std::optional<std::vector<std::string>> names = dataset_paths(body_->file.id());
  if (!names) throw DataError(fmt::format("{}: its contents cannot be listed: {}", body_->path, reason()));
  std::vector<DatasetInfo> found;
  for (const std::string& name : *names) found.push_back(info(name));
  return found;
}

void Reader::read_rows(std::string_view dataset, std::int64_t first, std::int64_t count, void* dst, DType dtype) const {
  const Reading reading(body_->path);
  const OpenDataset& from = body_->dataset(dataset);
  const std::int64_t rows = from.info.shape.rank() == 0 ? 1 : from.info.shape[0];
  ECHELON_CHECK(first >= 0 && count >= 0 && count <= rows - first, "rows {} to {} of {} in '{}' of {}", first,
                first + count, rows, dataset, body_->path);
  if (count * from.info.shape.row_elems() == 0) return;
  if (from.chunks.decodable() && H5Tequal(from.type.id(), native_type(dtype)) > 0)
    body_->read_whole_chunks(from, first, count, static_cast<std::uint8_t*>(dst));
  else
    body_->read_slab(from, first, count, dst, dtype);
}

void Reader::read_all(std::string_view dataset, void* dst, DType dtype) const {
  const Shape shape = info(dataset).shape;
  read_rows(dataset, 0, shape.rank() == 0 ? 1 : shape[0], dst, dtype);
}

bool Reader::has_attribute(std::string_view name) const {
  const Reading reading(body_->path);
  return h5::has_attribute(body_->file.id(), body_->path, name);
}
std::int64_t Reader::attribute_int(std::string_view name) const {
  const Reading reading(body_->path);
  return read_int(body_->file.id(), body_->path, name);
}
double Reader::attribute_double(std::string_view name) const {
  const std::vector<double> values = attribute_doubles(name);
  if (values.size() == 1) return values[0];
  throw DataError(fmt::format("{}: attribute '{}' must be one number, but has {}", path(), name, values.size()));
}
std::string Reader::attribute_text(std::string_view name) const {
  const std::vector<std::string> texts = attribute_texts(name);
  if (texts.size() == 1) return texts[0];
  throw DataError(fmt::format("{}: attribute '{}' must be one text, but has {}", path(), name, texts.size()));
}
std::vector<double> Reader::attribute_doubles(std::string_view name) const {
  const Reading reading(body_->path);
  return read_doubles(body_->file.id(), body_->path, name);
}
std::vector<std::string> Reader::attribute_texts(std::string_view name) const {
  const Reading reading(body_->path);
  return read_texts(body_->file.id(), body_->path, name);
}

}  // namespace echelon::h5
