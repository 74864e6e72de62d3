// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/error.hpp"
#include "base/reused_memory.hpp"
#include "h5/dataset_paths.hpp"
#include "h5/open_file.hpp"
#include "h5/read_attributes.hpp"
#include "h5/reader_body.hpp"
#include "h5/sources.hpp"

namespace echelon::h5 {
namespace {

// Selects a hyperslab of whole rows.
Handle rows_of(hid_t space, std::int64_t first, const Shape& shape, std::int64_t count) {
  Handle selection(H5Scopy(space), H5Sclose);
  Extents start{};
  start[0] = static_cast<hsize_t>(first);
  const Extents extent = extents_of(shape.with_front(count));
  if (H5Sselect_hyperslab(selection.id(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr) < 0) return {};
  return selection;
}

}  // namespace

const OpenDataset& Reader::Body::dataset(std::string_view name) {
  const Reading reading(path);
  const std::lock_guard lock(mutex);
  auto found = open.find(name);
  if (found == open.end()) found = open.emplace(std::string(name), open_dataset(std::string(name))).first;
  return *found->second;
}

// `as`: the type in memory.
void Reader::Body::read_slab(const OpenDataset& dataset, std::int64_t first, std::int64_t count, void* dst, hid_t as) {
  const Shape& shape = dataset.info.shape;
  const Handle space(H5Dget_space(dataset.handle.id()), H5Sclose);
  const Shape region = shape.rank() == 0 ? shape : shape.with_front(count);
  // The memory space needs the axes of the file: with a flat one the library copies element by element.
  const Handle memory = space_of(region);
  const Handle rows = shape.rank() == 0 ? space_of(region) : rows_of(space.id(), first, shape, count);
  ++library_reads;
  if (!memory.ok() || !rows.ok() || H5Dread(dataset.handle.id(), as, memory.id(), rows.id(), H5P_DEFAULT, dst) < 0)
    fail(dataset.info.name, fmt::format("cannot be read at rows {} to {}: {}", first, first + count - 1, reason()));
  require_read_sources(dataset);
  bytes_read += static_cast<std::uint64_t>(region.elems()) * dataset.chunks.element_bytes;
}

// The files of a virtual dataset may have been changed while it was read.
void Reader::Body::require_read_sources(const OpenDataset& dataset) const {
  if (dataset.is_virtual)
    require_sources(fmt::format("{}: dataset '{}'", path, dataset.info.name), path,
                    Handle(H5Dget_create_plist(dataset.handle.id()), H5Pclose).id());
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
    library_reads += chunks.file.any() ? 0 : 1;
    if (!whole) part.resize(chunks.bytes());
    const ChunkRead status = read_chunk(dataset.handle.id(), dataset.info.shape.rank(), chunks, begin,
                                        whole ? dst : part.data(), stored, why);
    if (status == ChunkRead::failed)
      fail(dataset.info.name, fmt::format("is damaged in the chunk of rows {} to {}: {}", begin,
                                          std::min(begin + chunks.rows, dataset.info.shape[0]) - 1, why));
    const std::size_t bytes = static_cast<std::size_t>(take) * chunks.row_bytes;
    if (status == ChunkRead::not_stored)
      read_slab(dataset, first, take, dst, dataset.type.id());
    else if (!whole)
      std::memcpy(dst, part.data() + static_cast<std::size_t>(skip) * chunks.row_bytes, bytes);
    dst += bytes;
    first += take;
    count -= take;
  }
  bytes_read += stored;
}

// Reads rows in the type of the file.
void Reader::Body::read_stored(const OpenDataset& dataset, std::int64_t first, std::int64_t count, void* dst) {
  const RowChunks& chunks = dataset.chunks;
  if (chunks.decodable()) return read_whole_chunks(dataset, first, count, static_cast<std::uint8_t*>(dst));
  if (!dataset.placed.any()) return read_slab(dataset, first, count, dst, dataset.type.id());
  const std::size_t bytes = static_cast<std::size_t>(count) * chunks.row_bytes;
  if (const std::string why =
          read_placed(dataset.placed, static_cast<std::size_t>(first) * chunks.row_bytes, bytes, dst);
      !why.empty())
    fail(dataset.info.name, fmt::format("cannot be read at rows {} to {}: {}", first, first + count - 1, why));
  bytes_read += bytes;
}

// Reads a chunk, or about a megabyte, at a time.
void Reader::Body::read_converted(const OpenDataset& dataset, std::int64_t first, std::int64_t count, void* dst,
                                  DType dtype) {
  constexpr std::size_t kBlock = 1 << 20;
  const RowChunks& chunks = dataset.chunks;
  const std::int64_t unit = chunks.decodable() ? chunks.rows : 1;  // rows that are decoded together
  const auto fitting = static_cast<std::int64_t>(kBlock / std::max<std::size_t>(chunks.row_bytes, 1));
  const std::int64_t step = std::max(fitting / unit, std::int64_t{1}) * unit;
  const std::int64_t each = dataset.info.shape.row_elems();
  thread_local ReusedMemory memory;
  std::uint8_t* const stored = memory.at_least(static_cast<std::size_t>(std::min(count, step)) * chunks.row_bytes);
  auto* to = static_cast<std::uint8_t*>(dst);
  while (count > 0) {
    const std::int64_t take = std::min(count, step - first % step);
    read_stored(dataset, first, take, stored);
    convert_numbers(*dataset.number, stored, take * each, to, dtype);
    to += static_cast<std::size_t>(take * each) * size_of(dtype);
    first += take;
    count -= take;
  }
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
std::uint64_t Reader::library_reads() const { return body_->library_reads; }

bool Reader::has(std::string_view dataset) const {
  const Reading reading(body_->path);
  return body_->has(dataset);
}

DatasetInfo Reader::info(std::string_view dataset) const { return body_->dataset(dataset).info; }

void Reader::require_written(std::string_view dataset) const {
  const DatasetInfo found = info(dataset);
  if (found.written_chunks < found.chunks && fill_of(dataset).value_or(0) == 0)
    body_->fail(dataset, fmt::format("declares {}, but {} of its {} chunks were written", found.shape.text(),
                                     found.written_chunks, found.chunks));
}

std::vector<std::string> Reader::names() const {
  const Reading reading(body_->path);
  std::optional<std::vector<std::string>> found = dataset_paths(body_->file.id());
  if (!found) throw DataError(fmt::format("{}: its contents cannot be listed: {}", body_->path, reason()));
  return *std::move(found);
}

std::vector<DatasetInfo> Reader::datasets() const {
  std::vector<DatasetInfo> found;
  for (const std::string& name : names()) found.push_back(info(name));
  return found;
}

void Reader::read_rows(std::string_view dataset, std::int64_t first, std::int64_t count, void* dst, DType dtype) const {
  const Reading reading(body_->path);
  const OpenDataset& from = body_->dataset(dataset);
  const std::int64_t rows = from.info.shape.rank() == 0 ? 1 : from.info.shape[0];
  ECHELON_CHECK(first >= 0 && count >= 0 && count <= rows - first, "rows {} to {} of {} in '{}' of {}", first,
                first + count, rows, dataset, body_->path);
  if (count * from.info.shape.row_elems() == 0) return;
  if (from.is_stored_as(dtype))
    body_->read_stored(from, first, count, dst);
  else if (from.number && is_converted(*from.number, dtype))
    body_->read_converted(from, first, count, dst, dtype);
  else
    body_->read_slab(from, first, count, dst, native_type(dtype));
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

std::vector<double> Reader::numbers_of(std::string_view dataset, std::string_view attribute) const {
  const Reading reading(body_->path);
  const hid_t id = body_->dataset(dataset).handle.id();
  return h5::has_attribute(id, body_->path, attribute) ? read_doubles(id, body_->path, attribute)
                                                       : std::vector<double>();
}
std::vector<std::string> Reader::texts_of(std::string_view dataset, std::string_view attribute) const {
  const Reading reading(body_->path);
  return read_fixed_texts_of(body_->dataset(dataset).handle.id(), body_->path, attribute);
}
std::string Reader::other_file(std::string_view name) const {
  const Reading reading(body_->path);
  const OpenDataset& dataset = body_->dataset(name);
  if (!dataset.linked_file.empty()) return dataset.linked_file;
  return first_other_source(Handle(H5Dget_create_plist(dataset.handle.id()), H5Pclose).id(), dataset.is_virtual);
}
std::optional<double> Reader::fill_of(std::string_view name) const {
  const Reading reading(body_->path);
  const OpenDataset& dataset = body_->dataset(name);
  const Handle creation(H5Dget_create_plist(dataset.handle.id()), H5Pclose);
  H5D_fill_value_t defined = H5D_FILL_VALUE_ERROR;
  if (!dataset.number || H5Pfill_value_defined(creation.id(), &defined) < 0 || defined != H5D_FILL_VALUE_USER_DEFINED)
    return std::nullopt;
  std::array<char, sizeof(double)> stored{};
  double value = 0;
  if (H5Pget_fill_value(creation.id(), dataset.type.id(), stored.data()) < 0) return std::nullopt;
  convert_numbers(*dataset.number, stored.data(), 1, &value, DType::f64);
  return value;
}
std::vector<NamedRows> Reader::named_rows() const {
  const Reading reading(body_->path);
  return read_named_rows(body_->file.id(), body_->path, "split");
}

}  // namespace echelon::h5
